"""Torch: tensors that share memory, plans that LibTorch runs, compile(), the example of the README."""
import contextlib
import functools
import json
import re
from pathlib import Path

import cgc
import numpy
import open_clip
import pytest
import torch
from cgc import _arrays
from models import needs_gpu
from numpy.testing import assert_allclose
from PIL import Image
from torch import nn
from torch._subclasses import FakeTensorMode

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture
def image(expected):
    return torch.from_numpy(expected["image"])


def test_tensors_give_tensors(tiny, expected, image):
    features = tiny.run("encode_image", image[:5])
    assert isinstance(features, torch.Tensor) and features.dtype == torch.float32
    assert_allclose(features.numpy(), expected["image_features"][:5], **TOLERANCE)
    results = tiny.run("forward", {"image": image[:4], "text": torch.from_numpy(expected["text"][:4])})
    assert_allclose(results[2].numpy(), expected["products"], **TOLERANCE)


def test_tensors_share_memory(tiny, expected, image):
    out = torch.full((6, 8), 7.0)
    pointer = out.data_ptr()
    assert tiny.run("encode_image", image[:4], out=out[:4]).data_ptr() == pointer
    assert_allclose(out[:4].numpy(), expected["image_features"][:4], **TOLERANCE)
    assert (out[4:] == 7).all()
    # An output of NumPy and a tensor of the same memory.
    shared = numpy.empty((4, 8), numpy.float32)
    tiny.run("encode_image", image[:4], out=torch.from_numpy(shared))
    numpy.testing.assert_array_equal(shared, out[:4].numpy())


def test_inputs_may_require_gradients(tiny, expected, image):
    features = tiny.run("encode_image", image.clone().requires_grad_())
    assert not features.requires_grad
    assert_allclose(features.numpy(), expected["image_features"], **TOLERANCE)


def test_negated_lazily(tiny, image):
    negated = torch._neg_view(image)
    with pytest.raises(cgc.Error, match=r"the negative of its memory.*x\.resolve_neg\(\)"):
        tiny.run("encode_image", negated)
    assert_allclose(tiny.run("encode_image", negated.resolve_neg()).numpy(), tiny.run("encode_image", -image).numpy())


@pytest.mark.parametrize(("plan", "dtype"), [("half", torch.float16), ("bfloat", torch.bfloat16)])
def test_half_precision(plans, expected, image, plan, dtype):
    with cgc.load(plans / f"{plan}.cgplan", executor="reference") as session:
        features = session.run("encode_image", image[:2].to(dtype))
    assert features.dtype == dtype
    assert_allclose(features.float().numpy(), expected["image_features"][:2], rtol=0.05, atol=0.05)


def test_bfloat16_of_numpy(plans, image):
    from ml_dtypes import bfloat16
    with cgc.load(plans / "bfloat.cgplan", executor="reference") as session:
        features = session.run("encode_image", image[:2].numpy().astype(bfloat16))
        same = session.run("encode_image", image[:2].bfloat16())
    assert features.dtype == bfloat16
    numpy.testing.assert_array_equal(features.astype(numpy.float32), same.float().numpy())


@pytest.mark.parametrize(("tensor", "match"), [
    (torch.ones(4, 16).double(), r"is float64, and the plan takes float32; give array.to\(torch.float32\)"),
    (torch.ones(16, 4).T, "is strided"),
    (torch.ones(4, 16, device="meta"), "image"),
    (torch.ones(4, 16).to_sparse(), "image"),
])
def test_wrong_tensors(tiny, tensor, match):
    with pytest.raises(cgc.UsageError, match=match):
        tiny.run("encode_image", tensor, out=numpy.empty((4, 8), numpy.float32))


def test_freed_tensor(tiny):
    tensor = torch.ones(4, 16)
    tensor.untyped_storage().resize_(0)
    with pytest.raises(cgc.UsageError, match="has no memory: it was freed"):
        tiny.run("encode_image", tensor)


def test_plan_that_libtorch_runs(plans, expected, image):
    with cgc.load(plans / "host.cgplan", threads=1) as session:
        features = session.run("encode_image", image)
        assert_allclose(features.numpy(), expected["image_features"], **TOLERANCE)
        with pytest.raises(cgc.UsageError, match="the plan runs on the host"):
            cgc.load(plans / "host.cgplan", device=0)
    mapped = {line.split()[-1] for line in open("/proc/self/maps") if "libtorch_cpu.so" in line}
    assert len(mapped) == 1


class Streams:
    """Stands for torch.cuda where there is no GPU: notes what is done with streams."""

    def __init__(self, monkeypatch, current):
        self.calls = []
        self.cuda_stream = current
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: self)
        monkeypatch.setattr(torch.cuda, "ExternalStream", lambda handle, device: handle)
        monkeypatch.setattr(torch.cuda, "stream", self.stream)

    def synchronize(self):
        self.calls.append("synchronize")

    @contextlib.contextmanager
    def stream(self, handle):
        self.calls.append(handle)
        yield


@pytest.mark.parametrize(("current", "given", "calls"), [
    (0, None, []),
    (0, 0, []),  # Torch's default stream: the legacy one.
    (0, 1, []),
    (5, 5, []),
    (5, 0, [1]),
    (0, 5, [5]),
])
def test_outputs_on_gpus_belong_to_the_stream(monkeypatch, current, given, calls):
    streams = Streams(monkeypatch, current)
    with FakeTensorMode():
        source = torch.empty(4, 16, device="cuda:0")
        made = _arrays.new_like(source, (4, 8), "bfloat16", "output 'y'", 0, _arrays.stream_handle(given))
    assert made.device == source.device and made.dtype == torch.bfloat16 and made.shape == (4, 8)
    assert streams.calls == calls


def test_tensors_on_gpus_are_waited_for(monkeypatch):
    streams = Streams(monkeypatch, 0)
    with FakeTensorMode():
        on_gpu = [torch.empty(4, device="cuda:0"), torch.empty(4, device="cuda:0")]
    _arrays.wait_for_torch([numpy.ones(4), torch.ones(4)])
    assert streams.calls == []
    _arrays.wait_for_torch([numpy.ones(4), *on_gpu])
    assert streams.calls == ["synchronize"]


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([2.0]))

    def forward(self, x):
        return x * self.scale


@pytest.mark.parametrize("inputs", [torch.ones(2, 4), [torch.ones(2, 4)], {"x": torch.ones(2, 4)}])
@pytest.mark.parametrize("how", ["export", "trace", "script", "scripted"])
def test_compile(tmp_path, inputs, how):
    model = torch.jit.script(Scaled().eval()) if how == "scripted" else Scaled().eval()
    exporter = {} if how == "scripted" else {"exporter": how}
    path = cgc.compile(model, inputs, output=tmp_path / "scaled.cgplan", batch=[1, 3], **exporter)
    with cgc.load(path, executor="reference") as session:
        assert [bucket.batch for bucket in session.entries["forward"].buckets] == [1, 3]
        assert_allclose(session.run("forward", torch.arange(8.0).reshape(2, 4)), 2 * numpy.arange(8).reshape(2, 4))


class Options(nn.Module):
    """What the parameters do differs, so that an example in the place of another one shows."""

    def forward(self, x, mask=None, shift=None, *, factor=None, **more):
        if mask is not None:
            x = x * mask
        if shift is not None:
            x = x + shift
        if factor is not None:
            x = x / factor
        return x - more["less"] if "less" in more else x


@pytest.mark.parametrize("names", [("x",), ("x", "mask"), ("x", "shift"), ("shift", "mask", "x"), ("x", "factor"),
                                   ("x", "less", "shift"), ("x", "mask", "shift", "factor", "less")])
@pytest.mark.parametrize("exporter", ["export", "trace"])
def test_compile_takes_examples_by_name(tmp_path, names, exporter):
    torch.manual_seed(0)
    inputs = {name: torch.rand(2, 4) + 1 for name in names}
    model = Options().eval()
    path = cgc.compile(model, inputs, output=tmp_path / "options.cgplan", target="cpu", exporter=exporter)
    assert "forward" not in vars(model)  # It is as before.
    with cgc.load(path) as session:
        assert {tensor.name for tensor in session.entries["forward"].inputs} == set(names)
        assert_allclose(session.run("forward", inputs), model(**inputs), rtol=1e-6)


def test_compile_takes_one_entry_one_batch_and_numpy(tmp_path):
    path = cgc.compile(Scaled().eval(), numpy.ones((2, 4), "float32"), output=tmp_path / "scaled.cgplan", entries="forward", batch=3)
    with cgc.load(path, executor="reference") as session:
        assert [bucket.batch for bucket in session.entries["forward"].buckets] == [3]


class Fails(nn.Module):
    def forward(self, x):
        raise KeyError("the model's own error")


class Nested(nn.Module):
    def forward(self, x):
        return {"a": [x, (x, {"b": x})]}


@pytest.mark.parametrize("model, inputs, message", [
    (nn.DataParallel(Scaled()), torch.ones(2, 4), "DataParallel.*model.module"),
    (torch.compile(Scaled(), backend="eager"), torch.ones(2, 4), "torch.compile.*_orig_mod"),
    (Fails().eval(), torch.ones(2, 4), r"torch.export cannot export the model: KeyError: .*own error.*test_torch.py:\d+"),
    (Scaled(), torch.ones(2, 4), r"training mode; call model.eval\(\)"),
    (torch.ones, torch.ones(2, 4), "give a torch.nn.Module"),
    (Scaled().eval(), "x", "input 'x' is str"),
    (Scaled().eval(), {"y": torch.ones(2, 4)}, "needs 'x', of which no example is given"),
    (Scaled().eval(), {"x": torch.ones(2, 4), "y": torch.ones(2, 4)}, "takes no input 'y'"),
    (Options().eval(), [torch.ones(2, 4)] * 4, "3 positional parameters, and 4 inputs"),
])
def test_compile_says_why_torch_cannot_export(tmp_path, model, inputs, message):
    with pytest.raises(cgc.UsageError, match=message):
        cgc.compile(model, inputs, output=tmp_path / "never.cgplan")
    assert not list(tmp_path.iterdir())


def test_compile_flattens_nested_outputs(tmp_path):
    path = cgc.compile(Nested().eval(), torch.ones(2, 4), output=tmp_path / "nested.cgplan")
    with cgc.load(path, executor="reference") as session:
        assert [output.name for output in session.entries["forward"].outputs] == ["a.0", "a.1.0", "a.1.1.b"]


class Calls(nn.Module):
    """A method that calls forward(), and forward() of its own."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(4, 4)

    def forward(self, x):
        return self.scale(x)

    def encode(self, x):
        return self(x) + 1


def test_compile_exports_methods(tmp_path):
    model, x = Calls().eval(), torch.randn(5, 4)
    for entries in (["encode"], ["encode", "forward"]):
        path = cgc.compile(model, x[:1], output=tmp_path / "calls.cgplan", batch=[1, 5], entries=entries)
        assert "forward" not in vars(model)  # It is as before.
        with cgc.load(path, executor="reference") as session:
            assert sorted(session.entries) == entries
            assert_allclose(session.run("encode", x), model.encode(x).detach(), **TOLERANCE)


def test_compile_refuses_a_batch_that_the_model_fixes(tmp_path):
    class Fixed(nn.Module):
        def forward(self, x):
            return x + torch.ones(2, 4)

    with pytest.raises(cgc.UsageError, match="torch.export cannot export the model.*batch"):
        cgc.compile(Fixed().eval(), torch.ones(2, 4), output=tmp_path / "never.cgplan", batch=[1, 2])
    assert not list(tmp_path.iterdir())


def test_compile_raises_the_programs_error(tmp_path):
    class Unsupported(nn.Module):
        def forward(self, x):
            return torch.linalg.svdvals(x)

    with pytest.raises(cgc.UnsupportedError, match="svdvals") as raised:
        cgc.compile(Unsupported().eval(), torch.ones(2, 4), output=tmp_path / "never.cgplan")
    assert raised.value.code is cgc.Code.UNSUPPORTED
    with pytest.raises(cgc.UsageError, match="--target"):
        cgc.compile(Scaled().eval(), torch.ones(2, 4), output=tmp_path / "never.cgplan", target="tpu")
    with pytest.raises(cgc.UsageError, match="no method 'encode'"):
        cgc.compile(Scaled().eval(), torch.ones(2, 4), output=tmp_path / "never.cgplan", entries=["encode"])
    with pytest.raises(cgc.UsageError, match="complex64, which no plan has"):
        cgc.compile(Scaled().eval(), torch.ones(2, 4, dtype=torch.complex64), output=tmp_path / "never.cgplan")
    assert not list(tmp_path.iterdir())


def test_the_example_of_a_plan_file(tmp_path, monkeypatch, capsys):
    """Runs it with a small model of random weights, by the reference executor."""
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
    (example,) = re.findall(r"^```python\n(import cgc\n.*?)^```$", page, re.DOTALL | re.MULTILINE)
    config = {"embed_dim": 32, "vision_cfg": {"image_size": 32, "patch_size": 16, "layers": 1, "width": 64, "head_width": 32},
              "text_cfg": {"context_length": 77, "vocab_size": 49408, "layers": 1, "width": 64, "heads": 2}}
    (tmp_path / "small.json").write_text(json.dumps(config))
    open_clip.add_model_config(tmp_path / "small.json")
    create = open_clip.create_model_and_transforms
    monkeypatch.setattr(open_clip, "create_model_and_transforms", lambda name, pretrained: create("small"))
    monkeypatch.setattr(cgc, "load", functools.partial(cgc.load, executor="reference"))
    monkeypatch.chdir(tmp_path)
    Image.effect_mandelbrot((50, 40), (-2, -1.5, 1, 1.5), 100).save("cat.jpg")
    values = {}
    exec(example, values)
    with torch.no_grad():
        of_image = values["model"].encode_image(values["images"], normalize=True)
        of_text = values["model"].encode_text(values["texts"], normalize=True)
    assert_allclose(values["image_features"].numpy(), of_image.numpy(), **TOLERANCE)
    assert_allclose(values["text_features"].numpy(), of_text.numpy(), **TOLERANCE)
    assert "tensor([[" in capsys.readouterr().out


@needs_gpu
@pytest.mark.parametrize("own_stream", [False, True])
def test_gpu_tensors_and_streams(plans, expected, image, own_stream):
    with cgc.load(plans / "tiny.cgplan", device=0, contexts=2) as session:
        stream = torch.cuda.Stream() if own_stream else torch.cuda.current_stream()
        with torch.cuda.stream(stream):
            for _ in range(100):
                # The input is made on the stream right before, and the output read right after.
                source = image.cuda(non_blocking=True) * 2 - image.cuda(non_blocking=True)
                out = session.run("encode_image", source, stream=stream)
                doubled = out * 2
            given = torch.empty_like(out)
            assert session.run("encode_image", [source], out=[given], stream=stream)[0] is given
            waited = session.run("encode_image", image.cuda() + 0)
        stream.synchronize()
        assert out.is_cuda
        for result in (doubled / 2, given, waited):
            assert_allclose(result.cpu().numpy(), expected["image_features"], rtol=1e-3, atol=1e-3)
        assert_allclose(session.run("encode_image", expected["image"]), expected["image_features"], rtol=1e-3, atol=1e-3)


@needs_gpu
def test_runs_inside_a_cuda_graph_of_torch(plans, expected, image):
    with cgc.load(plans / "tiny.cgplan", device=0, captured_contexts=1) as session:
        source, out = torch.zeros_like(image).cuda(), torch.empty(len(image), 8).cuda()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            session.run("encode_image", source * 2, out=out, stream=torch.cuda.current_stream())
            doubled = out * 2
        source.copy_(image / 2)
        graph.replay()
        assert_allclose((doubled / 2).cpu().numpy(), expected["image_features"], rtol=1e-3, atol=1e-3)
        with pytest.raises(cgc.BusyError, match="hold all 1 contexts"), torch.cuda.graph(torch.cuda.CUDAGraph()):
            session.run("encode_image", source, out=out, stream=torch.cuda.current_stream())
        del graph


def test_fallback(plans, expected, image):
    with cgc.load(plans / "host.cgplan", fallback=plans / "model.pt", max_batch=4, threads=1) as session:
        features = session.run("encode_image", image[:5])
        assert_allclose(features.numpy(), expected["image_features"][:5], **TOLERANCE)
        inputs = [image[:3], torch.from_numpy(expected["text"][:3])]  # The rows depend on each other.
        out = [torch.empty(3, 8) for _ in range(3)]
        session.run("forward", inputs, out=out)
        assert_allclose(out[2].numpy(), (out[0] * out[1][:1]).numpy(), **TOLERANCE)
        assert session.stats()["fallbacks"] == 2
