"""Model folders without torch: vectors from files and texts, equal to open_clip's."""
import functools
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import cgc
import numpy
import pytest
from cgc import _commands

EXAMPLES = Path(__file__).parents[2] / "examples"
LIMIT = 1e-5  # Of the relative L2 in fp32.


def distance(got, want):
    return numpy.linalg.norm(got - want) / numpy.linalg.norm(want)


def load(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cgc.load(folder, executor="reference")


@pytest.fixture(scope="module")
def clip(plans):
    with load(plans / "clip") as model:
        yield model


@pytest.fixture(scope="module")
def vectors(plans):
    return dict(numpy.load(plans / "clip.npz"))


@pytest.fixture
def pictures(plans):
    return sorted((plans / "pictures").iterdir())


@pytest.fixture
def copy(plans, tmp_path):
    return Path(shutil.copytree(plans / "clip", tmp_path / "moved" / "clip"))


def test_vectors_equal_those_of_open_clip(clip, vectors, pictures):
    forms = {"path": str, "Path": Path, "bytes": Path.read_bytes, "file": lambda path: io.BytesIO(path.read_bytes())}
    for name, form in forms.items():
        got = clip.encode_image([form(path) for path in pictures])
        assert distance(got, vectors["images"]) < LIMIT, name
    assert distance(clip.encode_text(list(vectors["words"])), vectors["texts"]) < LIMIT
    assert got.dtype == numpy.float32 and got.errors == {}


def test_any_number(clip, vectors, pictures):
    assert clip.encode_image([]).shape == clip.encode_text([]).shape == (0, clip.size)
    assert distance(clip.encode_image(str(pictures[1])), vectors["images"][1:2]) < LIMIT
    assert distance(clip.encode_text("a cat"), vectors["texts"][:1]) < LIMIT
    many = clip.encode_image(pictures * 6)
    assert distance(many, numpy.tile(vectors["images"], (6, 1))) < LIMIT
    array = numpy.zeros((9, 11, 3), numpy.uint8)
    assert clip.encode_image(array).shape == (1, clip.size)


def test_normalize(clip, pictures):
    assert numpy.allclose(numpy.linalg.norm(clip.encode_image(pictures), axis=1), 1)
    raw = clip.encode_image(pictures, normalize=False)
    assert not numpy.allclose(numpy.linalg.norm(raw, axis=1), 1, rtol=.1)
    assert distance(raw / numpy.linalg.norm(raw, axis=1, keepdims=True), clip.encode_image(pictures)) < LIMIT


def test_a_bad_picture_is_an_error_of_its_own(clip, vectors, pictures, tmp_path):
    cut = pictures[4].read_bytes()[:300]
    given = [pictures[0], b"", pictures[1], b"no picture", cut, tmp_path / "missing.jpg", pictures[2], 7]
    got = clip.encode_image(given, errors="return")
    assert sorted(got.errors) == [1, 3, 4, 5, 7] and all(got.errors.values())
    assert numpy.isnan(got[sorted(got.errors)]).all()
    assert distance(got[[0, 2, 6]], vectors["images"][:3]) < LIMIT
    with pytest.raises(cgc.InputError, match="picture 1 .*4 more") as caught:
        clip.encode_image(given)
    assert sorted(caught.value.errors) == [1, 3, 4, 5, 7] and distance(caught.value.vectors[:1], vectors["images"][:1]) < LIMIT
    with pytest.raises(cgc.UsageError, match="errors is 'skip'"):
        clip.encode_image(given, errors="skip")


def test_the_index_of_a_bad_picture_of_many(clip, vectors, pictures):
    given = pictures * 6
    given[19] = given[40] = b""
    got = clip.encode_image(given, errors="return")
    assert sorted(got.errors) == [19, 40] and numpy.flatnonzero(numpy.isnan(got).any(axis=1)).tolist() == [19, 40]
    good = [index for index in range(len(given)) if index not in got.errors]
    assert distance(got[good], numpy.tile(vectors["images"], (6, 1))[good]) < LIMIT


def test_a_vector_that_is_not_finite_is_an_error(clip, vectors, pictures, monkeypatch):
    run = clip.session.run

    def overflowing(entry, inputs):
        features = numpy.array(run(entry, inputs))
        features[1, 3], features[2, 0] = numpy.inf, numpy.nan
        return features

    monkeypatch.setattr(clip.session, "run", overflowing)
    for got, want in ((clip.encode_image([*pictures[:3], b""], errors="return"), vectors["images"]),
                      (clip.encode_text(list(vectors["words"]), errors="return", normalize=False), vectors["texts"])):
        bad = [1, 2, 3] if want is vectors["images"] else [1, 2]
        assert list(got.errors) == bad and all("not finite" in got.errors[index] for index in (1, 2))
        assert numpy.isnan(got[bad]).all() and numpy.isfinite(numpy.delete(got, bad, axis=0)).all()
    with pytest.raises(cgc.InputError, match="picture 1 has a vector that is not finite.* and 1 more"):
        clip.encode_image(pictures[:3])


def test_paths_that_no_file_can_have_and_a_fifo(clip, tmp_path):
    os.mkfifo(tmp_path / "p.jpg")
    got = clip.encode_image(["\ud800.jpg", tmp_path / "p.jpg", io.BytesIO(b"no picture")], errors="return")
    assert "has a path that no file has" in got.errors[0] and got.errors[1] == "is no regular file"
    assert got.errors[2] == "cannot be decoded by Pillow (UnidentifiedImageError)"


def test_a_folder_for_cpu(plans, vectors, pictures):
    pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with cgc.load(plans / "clip_cpu") as model:
            assert sorted(model.session.entries) == ["encode_image", "encode_text"] and model.card.target == "cpu"
            got = model.encode_image([*pictures, b""], errors="return")
            assert distance(got[:-1], vectors["images"]) < LIMIT and list(got.errors) == [len(pictures)]
            assert distance(model.encode_text(list(vectors["words"])), vectors["texts"]) < LIMIT


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="has a GPU, so that the plans load")
@pytest.mark.filterwarnings("ignore:.*RANDOM WEIGHTS")
def test_without_a_gpu_an_error_advises_what_the_caller_has(plans, tmp_path, capsys):
    for name, remake in (("clip", "export the model"), ("tiny.cgplan", "compile it")):
        with pytest.raises(cgc.DeviceError, match=f'with executor="reference", which is slow, or {remake} with target="cpu"$'):
            cgc.load(plans / name)
    for command in (["embed", "--images", str(plans / "pictures"), "--out", str(tmp_path / "out")], ["search", str(plans / "pictures")]):
        assert _commands.run(command[0], [*command[1:], "--model", str(plans / "clip")]) == cgc.Code.DEVICE
        assert "with --executor reference, which is slow, or export the model with --target cpu of cgc export" in capsys.readouterr().err


def test_a_bad_text_is_an_error_of_its_own(clip, vectors):
    given = ["a cat", None, "x" * 1_000_001, b"a cat", str(vectors["words"][2])]
    got = clip.encode_text(given, errors="return")
    assert distance(got[[0, 4]], vectors["texts"][[0, 2]]) < LIMIT and numpy.isnan(got[1:4]).all()
    assert "NoneType" in got.errors[1] and "1,000,001 characters" in got.errors[2] and "bytes" in got.errors[3]
    with pytest.raises(cgc.InputError, match="text 1 is NoneType"):
        clip.encode_text(given)
    with pytest.raises(cgc.UsageError, match="text 0 is int"):
        clip.tokenize([7])
    for texts, message in ((None, "texts is of type NoneType; give a str"), (7, "texts is of type int"), (b"abc", "text 0 is bytes")):
        with pytest.raises(cgc.UsageError, match=message):
            clip.encode_text(texts)


def test_vectors_carry_their_identity(clip, copy, pictures):
    images, texts = clip.encode_image(pictures), clip.encode_text(["a", "b"])
    assert images[1:3].identity == (images * 2).identity == clip.identity and clip.identity.startswith("RANDOM-WEIGHTS-")
    assert numpy.allclose(clip.similarity(3 * images, texts), numpy.asarray(images) @ numpy.asarray(texts).T, atol=1e-6)
    assert clip.similarity(numpy.asarray(images[0]), texts).shape == (1, 2)
    for same in (pickle.loads(pickle.dumps(images)), numpy.concatenate([images, images]), numpy.vstack((texts, texts)), images.mean(axis=0),
                 images.astype(numpy.float64), numpy.add(images, 1, out=images.copy())):
        assert isinstance(same, cgc.Vectors) and same.identity == clip.identity
    card = json.loads((copy / "model.json").read_text())
    card.pop("sha256")
    card["identity"] = "another"
    (copy / "model.json").write_text(json.dumps({**card, "sha256": cgc._folder.seal(card)}))
    with load(copy) as other:
        foreign = other.encode_text(["a"])
    with pytest.raises(cgc.UsageError, match="of the model another, and this one is RANDOM-WEIGHTS"):
        clip.similarity(images, foreign)
    with pytest.raises(cgc.UsageError, match="of the model another, and this one is RANDOM-WEIGHTS"):
        clip.similarity(foreign, images)
    for wrong in (numpy.zeros((2, 31)), numpy.zeros((1, 2, 32)), numpy.asarray(images)[:, :16]):
        for given in ((images, wrong), (wrong, images)):
            with pytest.raises(cgc.UsageError, match=r"the vectors have the shape .*; give \[n, 32\]"):
                clip.similarity(*given)
    for combine in (lambda: numpy.concatenate([texts, foreign]), lambda: texts + foreign, lambda: images @ foreign.T,
                    lambda: numpy.add(texts, 1, out=foreign)):
        with pytest.raises(cgc.UsageError, match="of different models, RANDOM-WEIGHTS-.* and another"):
            combine()


def test_a_folder_may_be_moved_and_says_that_its_weights_are_random(copy, vectors):
    with pytest.warns(UserWarning, match="RANDOM WEIGHTS"):
        model = cgc.load(copy, executor="reference")
    with model:
        assert distance(model.encode_text("a cat"), vectors["texts"][:1]) < LIMIT
        assert "RANDOM-WEIGHTS" in repr(model)
    assert "RANDOM WEIGHTS" in (copy / "README.md").read_text()
    with pytest.raises(cgc.UsageError, match="closed"):
        model.encode_text("a cat")


@pytest.mark.parametrize("name", ["model.cgplan", "preprocess.json", "tokenizer/settings.json", "tokenizer/merges.txt.gz"])
def test_a_file_that_is_missing_or_changed_is_named(copy, name):
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(cgc.InvalidFileError, match=f"{name} has changed since the export"):
        cgc.load(copy)
    (copy / name).unlink()
    with pytest.raises(cgc.InvalidFileError, match=f"{name} is missing"):
        cgc.load(copy)


def test_a_card_that_has_changed_is_refused(copy):
    card = json.loads((copy / "model.json").read_text())
    for name, value in {**card, "identity": card["identity"].removeprefix("RANDOM-WEIGHTS-")}.items():
        if name != "format":
            changed = {**card, name: value if value != card[name] else 10 ** 12}
            for content in (changed, {key: each for key, each in card.items() if key != name}, {**card, "other": 1}):
                (copy / "model.json").write_text(json.dumps(content))
                with pytest.raises(cgc.InvalidFileError, match="model.json has changed since the export"):
                    cgc.load(copy)


@pytest.mark.parametrize("content, message", [
    ('{"format": 1}', "has format 1, and this version of cgc reads 3"), ("[]", "has format None"), ("{", "missing or damaged"),
    ('{"format": 3}', "model.json has changed since the export"), ("[" * 100_000, "missing or damaged"), (b"\xff", "missing or damaged"),
    (None, "no model folder: it has no model.json")])
def test_a_card_that_cannot_be_read_is_an_error(tmp_path, content, message):
    if content is not None:
        (tmp_path / "model.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(cgc.InvalidFileError, match=message):
        cgc.load(tmp_path)


@pytest.mark.filterwarnings("ignore:.*RANDOM WEIGHTS")
def test_the_example_of_captions(plans, monkeypatch, capsys):
    captions = ["a cat", "noise"]
    with load(plans / "clip") as model:
        scores = model.similarity(model.encode_image([plans / "pictures" / "0.jpg"]), model.encode_text([f"a photo of {each}" for each in captions]))
    monkeypatch.setattr(cgc, "load", functools.partial(cgc.load, executor="reference"))
    monkeypatch.setattr(sys, "argv", ["zero_shot.py", str(plans / "clip"), str(plans / "pictures" / "0.jpg"), "missing.jpg", "--", *captions])
    exec(EXAMPLES.joinpath("zero_shot.py").read_text(), {})
    first, second = capsys.readouterr().out.splitlines()
    assert captions[scores[0].argmax()] in first and "missing.jpg" in second and "No such file" in second


@pytest.mark.parametrize("arguments", [[], ["folder"], ["folder", "a.jpg", "--"], ["folder", "--", "a cat"]], ids=str)
def test_the_example_of_captions_says_what_it_takes(monkeypatch, arguments):
    monkeypatch.setattr(sys, "argv", ["zero_shot.py", *arguments])
    with pytest.raises(SystemExit, match="zero_shot.py MODEL_FOLDER PICTURE... -- CAPTION..."):
        exec(EXAMPLES.joinpath("zero_shot.py").read_text(), {})


def test_a_repository_of_triton_is_whole_or_not_made(plans, tmp_path):
    def make(folder):
        return subprocess.run([sys.executable, EXAMPLES / "triton" / "make_repository.py", folder, tmp_path / "models"], capture_output=True,
                              text=True)

    (tmp_path / "model.json").write_text("[]")
    for folder in (plans, tmp_path, tmp_path / "no"):
        done = make(folder)
        assert done.returncode == 1 and "cannot be loaded as a model folder" in done.stderr and "Traceback" not in done.stderr
    (tmp_path / "models" / "embed_image").mkdir(parents=True)
    done = make(plans / "clip")
    assert "embed_image exists: remove it" in done.stderr and len(list((tmp_path / "models").iterdir())) == 1
