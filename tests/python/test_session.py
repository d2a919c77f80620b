"""A session over its life: threads, exchanged plans and weights, waiting, closing."""
import ast
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cgc
import numpy
import pytest
from cgc import _runtime
from numpy.testing import assert_allclose

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}
THREADS = 8
#: How often a test repeats what only overlaps with another thread by chance.
ROUNDS = 500


def in_threads(function):
    """The results of THREADS calls at a time."""
    start = threading.Barrier(THREADS)

    def call(index):
        start.wait()
        return function(index)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(call, range(THREADS)))


@pytest.mark.parametrize("contexts", [1, 3])
def test_threads_get_what_one_gets(plans, expected, contexts):
    with cgc.load(plans / "tiny.cgplan", executor="reference", contexts=contexts) as session:
        batches = numpy.random.default_rng(1).integers(1, 40, (THREADS, 25))
        alone = {batch: session.run("encode_image", expected["image"][:batch]) for batch in range(1, 40)}

        def requests(index):
            return [session.run("encode_image", expected["image"][:batch]) for batch in batches[index]]

        for index, results in enumerate(in_threads(requests)):
            for batch, result in zip(batches[index], results, strict=True):
                numpy.testing.assert_array_equal(result, alone[batch])
        assert session.stats()["failures"] == 0


def test_run_releases_the_gil(plans):
    # A request finds the only context in use only if another thread runs meanwhile.
    with cgc.load(plans / "tiny.cgplan", executor="reference") as session:
        image = numpy.ones((2000, 16), numpy.float32)
        for _ in range(ROUNDS):
            in_threads(lambda _: session.run("encode_image", image))
            if session.stats()["waits"]:
                return
    pytest.fail("no request of eight threads ever waited for the context")


@pytest.mark.parametrize("limit", [{"max_waiting": 1}, {"timeout": 0.001}])
def test_busy(plans, limit):
    with cgc.load(plans / "tiny.cgplan", executor="reference", **limit) as session:
        image = numpy.ones((2000, 16), numpy.float32)

        def request(_):
            try:
                session.run("encode_image", image)
            except cgc.BusyError as error:
                assert error.code is cgc.Code.BUSY
                return True
            return False

        assert any(any(in_threads(request)) for _ in range(ROUNDS))
        session.run("encode_image", image)


def test_weights_are_swapped_under_load(plans, expected, tiny):
    image = expected["image"]
    old, new = expected["image_features"], expected["other_image_features"]
    assert not numpy.allclose(old, new, **TOLERANCE)
    swapped = threading.Event()

    def requests(index):
        if index == 0:
            tiny.swap_weights(plans / "other.cgplan")
            swapped.set()
            return []
        results = [tiny.run("encode_image", image)]
        while not swapped.is_set():
            results.append(tiny.run("encode_image", image))
        return results

    for results in in_threads(requests):
        for result in results:
            assert numpy.allclose(result, old, **TOLERANCE) or numpy.allclose(result, new, **TOLERANCE)
    assert_allclose(tiny.run("encode_image", image), new, **TOLERANCE)
    assert tiny.stats()["updates"] == 1 and tiny.stats()["failures"] == 0


def test_weights_of_another_model_are_refused(plans, expected, tiny):
    with pytest.raises(cgc.UsageError):
        tiny.swap_weights(plans / "half.cgplan")
    assert_allclose(tiny.run("encode_image", expected["image"]), expected["image_features"], **TOLERANCE)


def test_update_brings_new_buckets(plans, expected, tiny):
    image = expected["image"][:16]
    tiny.run("encode_image", image)
    assert tiny.stats()["splits"] == 1
    tiny.update(plans / "tiny_16.cgplan")
    assert [bucket.batch for bucket in tiny.entries["encode_image"].buckets] == [1, 4, 16]
    assert_allclose(tiny.run("encode_image", image), expected["image_features"][:16], **TOLERANCE)
    assert tiny.stats()["splits"] == 1
    products = tiny.run("forward", [image, expected["text"][:16]])[2]
    assert products.shape == (16, 8)
    with pytest.raises(cgc.UsageError):
        tiny.update(plans / "half.cgplan")
    with pytest.raises(cgc.InvalidFileError):
        tiny.update("nowhere.cgplan")
    assert len(tiny.entries["encode_image"].buckets) == 3


def test_prepare(plans, expected):
    with cgc.load(plans / "tiny.cgplan", executor="reference", capture="first_use") as session:
        session.prepare("encode_image", 4)
        assert_allclose(session.run("encode_image", expected["image"]), expected["image_features"], **TOLERANCE)


def test_stats_count(tiny):
    tiny.run("encode_image", numpy.ones((3, 16), numpy.float32))
    with pytest.raises(cgc.UsageError):
        tiny.run("encode_image", numpy.ones((3, 17), numpy.float32))
    stats = tiny.stats()
    assert stats["requests"] == 2 and stats["failures"] == 1
    assert stats["rows"] == 3
    assert set(stats) == {"requests", "failures", "splits", "bucket_runs", "rows", "padded_rows", "waits",
                          "wait_micros", "updates", "fallbacks", "replays", "captures"}


def test_memory_is_that_of_the_plan(plans, tiny):
    with cgc.load(plans / "tiny.cgplan", executor="reference", contexts=2) as two:
        one, both = tiny.memory(), two.memory()
    assert set(one) == {"weights", "arenas", "io", "graphs", "workspace", "peak", "states"}
    assert 0 <= one["workspace"] <= one["arenas"]
    assert one["peak"] == one["weights"] + one["arenas"] + one["io"] + one["graphs"]
    assert 0 < one["weights"] == both["weights"]
    assert 0 < 2 * one["arenas"] == both["arenas"]
    # Inputs and outputs of the buckets of 1 and 4 rows: of encode_image, of encode_text, and of forward, whose third
    # output is [N,8] too.
    image, text, features = 16 * 4, 5 * 8, 8 * 4
    assert one["io"] == (1 + 4) * (2 * image + 2 * text + 5 * features)
    assert both["io"] == 2 * one["io"]


def test_a_closed_session_refuses(plans, tiny):
    assert "closed" not in repr(tiny) and "encode_image" in repr(tiny)
    with tiny as same:
        assert same is tiny
    tiny.close()
    assert "closed" in repr(tiny)
    for call in (lambda: tiny.run("encode_image", numpy.ones((1, 16), numpy.float32)),
                 lambda: tiny.prepare("encode_image", 1), lambda: tiny.update(plans / "tiny.cgplan"),
                 lambda: tiny.swap_weights(plans / "tiny.cgplan"), tiny.stats, tiny.memory):
        with pytest.raises(cgc.UsageError, match="the session is closed"):
            call()
    assert len(tiny.entries) == 3


def test_close_while_threads_run(tiny):
    image = numpy.ones((4, 16), numpy.float32)
    plain = tiny.run("encode_image", image)

    def requests(index):
        if index == 0:
            tiny.close()
        with pytest.raises(cgc.UsageError, match="the session is closed"):
            while True:
                numpy.testing.assert_array_equal(tiny.run("encode_image", image), plain)

    in_threads(requests)


def test_requests_keep_no_arrays(tiny):
    class Watched(numpy.ndarray):
        deleted = 0

        def __del__(self):
            Watched.deleted += 1

    image = numpy.ones((4, 16), numpy.float32).view(Watched)
    tiny.run("encode_image", image, out=numpy.empty((4, 8), numpy.float32))
    del image
    gc.collect()
    assert Watched.deleted == 1


def test_stubs_describe_the_extension():
    tree = ast.parse(Path(_runtime.__file__).with_name("_runtime.pyi").read_text())
    assert Path(_runtime.__file__).with_name("py.typed").exists()

    def public(names):
        return {name for name in names if not name.startswith("_")}

    defined = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert public(defined) == public(vars(_runtime))
    for name, node in defined.items():
        if isinstance(node, ast.ClassDef):
            assert public(member.name for member in node.body) == public(vars(getattr(_runtime, name)))


def test_public_names_have_docs():
    for name in cgc.__all__:
        assert getattr(cgc, name).__doc__, name
    for name, member in vars(cgc.Session).items():
        assert name.startswith("_") or member.__doc__, name


def test_health(plans, expected):
    with cgc.load(plans / "tiny.cgplan", executor="reference") as session:
        session.run("encode_image", expected["image"][:3])
        text = session.metrics('a "name"')
        assert 'cgc_rows_total{session="a \\"name\\""} 3\n' in text
        assert len(session.metrics("n" * 5000)) > 5000
        assert session.healthy()
        session.reset()
        assert session.stats()["updates"] == 1
    with pytest.raises(cgc.UsageError, match="closed"):
        session.healthy()


def test_log(plans):
    messages = []
    with cgc.load(plans / "tiny.cgplan", executor="reference",
                  log=lambda level, message: messages.append((level, message))) as session:
        for _ in range(5):
            with pytest.raises(cgc.UsageError):
                session.run("encode_image", numpy.ones((1, 17), numpy.float32), out=numpy.ones((1, 8), numpy.float32))
    assert [level for level, _ in messages] == ["warning"]
    assert "a request failed (usage, 1 so far)" in messages[0][1]


def test_a_log_that_raises_fails_no_request(plans, expected, monkeypatch):
    raised = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: raised.append(unraisable.exc_type))
    with cgc.load(plans / "tiny.cgplan", executor="reference", log=lambda level, message: 1 / 0) as session:
        session.reset()  # Is told to the log.
        session.run("encode_image", expected["image"][:3])
    assert raised == [ZeroDivisionError]


def test_fallback_needs_a_model(plans):
    with pytest.raises(cgc.Error):
        cgc.load(plans / "tiny.cgplan", executor="reference", fallback=plans / "expected.npz")


def test_a_log_that_holds_its_session_is_collected(plans):
    messages = []
    session = cgc.load(plans / "tiny.cgplan", executor="reference",
                       log=lambda level, message: messages.append((holder[0].entries, message)))
    holder = [session]
    gone = weakref.ref(session)
    del session, holder
    gc.collect()
    assert gone() is None


def test_captured_contexts_need_a_gpu(plans):
    with pytest.raises(cgc.UsageError, match="set aside for captures, and the plan runs on the host"):
        cgc.load(plans / "tiny.cgplan", executor="reference", captured_contexts=1)
