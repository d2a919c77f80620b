"""cgc.openclip.export, cgc.huggingface.export: folders with the vectors and ids of open_clip and transformers."""
import json
import os
import signal
import subprocess
import sys
import types
import warnings

import cgc
import cgc.ray
import numpy
import open_clip
import pytest
import torch
import transformers
from PIL import Image
from cgc import _checkpoint, _folder, _openclip_export, _tokenizer, _towers

CGC = [sys.executable, "-c", "from cgc._program import main; main()"]
CONFIG = {"embed_dim": 16, "vision_cfg": {"image_size": 32, "patch_size": 16, "layers": 1, "width": 32, "head_width": 16},
          "text_cfg": {"context_length": 77, "vocab_size": 49408, "layers": 1, "width": 32, "heads": 2}}
pytestmark = pytest.mark.filterwarnings("ignore:.*RANDOM WEIGHTS")


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "export_test.json"
    path.write_text(json.dumps(CONFIG))
    open_clip.add_model_config(path)
    return path


def trained(seed=1, **settings):
    torch.manual_seed(seed)
    return open_clip.create_model("export_test", **settings).eval()


def card(folder):
    return json.loads((folder / "model.json").read_text())


def export(folder, config, **options):
    return card(cgc.openclip.export(folder, str(config), batch=2, **options))


def digest(model):
    """That of the weights which the towers of a CLIP read."""
    return _checkpoint.digest({name: value for name, value in model.state_dict().items() if name != "logit_scale"})


WRAPPINGS = {
    "plain": lambda state: state, "ddp": lambda state: {"epoch": 3, "state_dict": {f"module.{k}": v for k, v in state.items()}},
    "compiled": lambda state: {f"_orig_mod.{k}": v for k, v in state.items()},
    "both": lambda state: {"model": {f"module._orig_mod.{k}": v for k, v in state.items()}, "optimizer": {"state": {}}},
    "lightning": lambda state: {"state_dict": {f"model.{k}": v for k, v in state.items()}},
}


def test_checkpoints_as_people_have_them(config, tmp_path):
    from safetensors.torch import save_file
    # Numbers that 16 bits hold exactly.
    state = {name: value.half().float().contiguous() for name, value in trained().state_dict().items()}
    files = {name: wrap(state) for name, wrap in WRAPPINGS.items()}
    files["half"] = {name: value.half() for name, value in state.items()}
    for name, content in files.items():
        torch.save(content, tmp_path / f"{name}.pt")
    save_file(state, tmp_path / "safe.safetensors")
    for path in tmp_path.iterdir():
        read = _checkpoint.read(path, average=False)
        assert read.keys() == state.keys(), path
        assert all(value.dtype == state[name].dtype and torch.equal(value, state[name]) for name, value in read.items()), path
    wanted = trained(seed=7)
    wanted.load_state_dict(state)
    got = export(tmp_path / "folder", config, checkpoint=tmp_path / "both.pt")
    assert (got["weights_sha256"], got["weights"]) == (digest(wanted), "both.pt")
    assert not got["identity"].startswith("RANDOM")
    assert got["logit_scale"] == pytest.approx(wanted.logit_scale.exp().item())
    assert sorted(path.relative_to(tmp_path / "folder").as_posix() for path in (tmp_path / "folder").rglob("*.*")) == [
        "README.md", "model.cgplan", "model.json", "preprocess.json", "tokenizer/merges.txt.gz", "tokenizer/settings.json"]


def test_averages_and_a_bias(config, tmp_path):
    state, average = (trained(seed).state_dict() for seed in (1, 2))
    torch.save({"state_dict": state, "state_dict_ema": average}, tmp_path / "both.pt")
    identities = [export(tmp_path / str(ema), config, checkpoint=tmp_path / "both.pt", ema=ema)["identity"] for ema in (False, True)]
    assert identities[0] != identities[1]
    torch.save(state, tmp_path / "one.pt")
    with pytest.raises(cgc.UsageError, match="has no averages of weights"):
        export(tmp_path / "none", config, checkpoint=tmp_path / "one.pt", ema=True)
    averaged = torch.optim.swa_utils.AveragedModel(trained(2))
    torch.save(averaged.state_dict(), tmp_path / "swa.pt")
    assert export(tmp_path / "swa", config, checkpoint=tmp_path / "swa.pt", ema=True)["identity"] == identities[1]
    torch.save({**state, "logit_bias": torch.tensor(-9.5)}, tmp_path / "bias.pt")
    assert export(tmp_path / "bias", config, checkpoint=tmp_path / "bias.pt")["logit_bias"] == -9.5


def test_what_decides_a_vector_is_in_the_identity(config, tmp_path):
    random = export(tmp_path / "random", config)
    assert random["identity"].startswith("RANDOM-WEIGHTS-") and random["weights"] == "RANDOM-WEIGHTS"
    assert export(tmp_path / "again", config)["identity"] == random["identity"]
    cgc.openclip.export(tmp_path / "batches", str(config), batch=(1, 3))
    assert card(tmp_path / "batches")["identity"] == random["identity"]
    assert export(tmp_path / "seed", config, seed=1)["identity"] != random["identity"]
    assert export(tmp_path / "half", config, precision="fp16")["identity"] != random["identity"]


def test_models_of_the_same_weights_have_identities_of_their_own(config, tmp_path):
    torch.save(trained().state_dict(), tmp_path / "weights.pt")
    identities = [export(tmp_path / "folder", config, checkpoint=tmp_path / "weights.pt")["identity"]]
    for number, change in enumerate([{"quick_gelu": True}, {"text_cfg": {**CONFIG["text_cfg"], "heads": 4}}]):
        (tmp_path / f"export_test_{number}.json").write_text(json.dumps({**CONFIG, **change}))
        identities.append(export(tmp_path / str(number), tmp_path / f"export_test_{number}.json",
                                 checkpoint=tmp_path / "weights.pt")["identity"])
    assert len({*identities}) == 3


def test_files_that_decide_a_vector_are_in_the_identity():
    files = {"model.cgplan": "0", "preprocess.json": "0", "tokenizer/settings.json": "0", "tokenizer/merges.txt.gz": "0"}
    identities = [_folder._identity_of("0", {}, "fp32", {**files, name: "1"}, False) for name in files]
    assert len({*identities}) == 4 and identities[0] == _folder._identity_of("0", {}, "fp32", files, False)


def test_messages_of_open_clip_are_not_repeated(config, tmp_path, caplog):
    torch.save(trained().state_dict(), tmp_path / "weights.pt")
    caplog.clear()
    export(tmp_path / "folder", config, checkpoint=tmp_path / "weights.pt")
    assert not [record for record in caplog.records if record.name == "root"]


def test_a_checkpoint_of_torchscript(config, tmp_path):
    model = trained()
    for name, value in (("input_resolution", 32), ("context_length", 77), ("vocab_size", 49408)):  # Those of OpenAI have these.
        vars(model).pop(name, None)
        model.register_buffer(name, torch.tensor(value))
    scripted = torch.jit.trace(model, (torch.rand(1, 3, 32, 32), torch.zeros(1, 77, dtype=torch.int64)), check_trace=False)
    scripted.save(tmp_path / "model.pt")
    assert export(tmp_path / "folder", config, checkpoint=tmp_path / "model.pt")["weights_sha256"] == digest(trained())


def test_weights_that_open_clip_leaves_uninitialized(tmp_path):
    """Those of CoCa are whatever is in memory."""
    config = {**CONFIG, "custom_text": True, "multimodal_cfg": {"context_length": 76, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1,
                                           "attn_pooler_heads": 2}}
    config["vision_cfg"] = {**CONFIG["vision_cfg"], "attentional_pool": True, "attn_pooler_queries": 4, "attn_pooler_heads": 2,
                            "output_tokens": True}
    config["text_cfg"] = {**CONFIG["text_cfg"], "context_length": 76, "embed_cls": True, "output_tokens": True}
    (tmp_path / "coca_export_test.json").write_text(json.dumps(config))
    program = ("import sys, open_clip, torch; from cgc import _checkpoint, _openclip_export as own; open_clip.add_model_config(sys.argv[1]); "
               "torch.manual_seed(0); model = own._created(open_clip, 'coca_export_test', None); "
               "print(all(value.isfinite().all() for value in model.parameters()), _checkpoint.digest(model.state_dict()))")
    printed = {subprocess.run([sys.executable, "-c", program, tmp_path / "coca_export_test.json"], env={**os.environ, "MALLOC_PERTURB_": number},
                              capture_output=True, text=True, check=True).stdout for number in ("1", "2")}
    assert len(printed) == 1 and next(iter(printed)).startswith("True")


BAD_FILES = {
    "text": (b"no checkpoint", "this is text, not a checkpoint"), "empty": (b"", "the file is empty"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1", "git lfs pull"), "plan": (b"CGCPLAN\0", "this is a cgc plan"),
    "noise": (bytes(range(128, 256)), "this is of no known kind"), "safetensors": (b"\2" + bytes(7) + b"{}", "a name that ends in .safetensors"),
    "cut": (b"PK\3\4" + bytes(99), "cut short"), "pickle": (b"\x80\2}.\x80\2}.\x80\2}.", "this is a pickle"),
    "one tensor": (torch.zeros(3), "this is one tensor, not weights by name"), "list": ([1], "this is a list or a value"),
    "object": ({"model": torch.nn.Linear(2, 2)}, "holds a pickled object of class torch.nn.modules.linear.Linear"), "others": ({"epoch": 1}, "it holds epoch, and no weights"),
    "another model": ({"fc.weight": torch.zeros(3, 3)}, "the weights are not those of export_test"),
    "code": (torch.nn.Linear(2, 2), "pickled object of class torch.nn.modules.linear.Linear, .*save the weights alone"),
}


def in_itself():
    content = {}
    content["state_dict"] = content
    return content


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("content, message", [
    (in_itself(), "holds state_dict, and no weights"), ({"input_resolution": torch.tensor(224)}, "holds input_resolution, and no weights"),
    ({3: torch.zeros(2)}, "holds 3, and no weights"), ({}, "holds nothing, and no weights"),
    ({"a": torch.full((2,), 1e300, dtype=torch.float64)}, "weight a has elements that are NaN or inf"),
    ({"a": torch.eye(2).to_sparse()}, "weight a is of the layout torch.sparse_coo"), ({"a": torch.ones(2) * 1j}, "weight a is complex"),
    ({"a": torch.ones(2, device="meta")}, "weight a is on the device meta"),
    ({"a": torch.quantize_per_tensor(torch.ones(3), .1, 0, torch.qint8)}, "weight a is quantized")])
def test_weights_of_other_kinds_are_refused(tmp_path, content, message):
    torch.save(content, tmp_path / "weights.pt")
    with pytest.raises(cgc.InvalidFileError, match=message):
        _checkpoint.read(tmp_path / "weights.pt", average=False)


def test_weights_of_8_bits_become_float32(tmp_path):
    torch.save({"a": torch.ones(2).to(torch.float8_e4m3fn)}, tmp_path / "weights.pt")
    assert torch.equal(_checkpoint.read(tmp_path / "weights.pt", average=False)["a"], torch.ones(2))


@pytest.mark.parametrize("content, message", BAD_FILES.values(), ids=BAD_FILES)
def test_what_is_no_checkpoint_is_refused_and_leaves_nothing(config, tmp_path, content, message):
    path = tmp_path / "weights.pt"
    path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
    with pytest.raises(cgc.Error, match=message):
        export(tmp_path / "folder", config, checkpoint=path)
    assert [each.name for each in tmp_path.iterdir()] == ["weights.pt"]


def test_a_checkpoint_of_nan_is_refused(config, tmp_path):
    state = trained().state_dict()
    state["logit_scale"] = torch.tensor(float("nan"))
    torch.save(state, tmp_path / "nan.pt")
    with pytest.raises(cgc.InvalidFileError, match="the weight logit_scale has elements that are NaN"):
        export(tmp_path / "folder", config, checkpoint=tmp_path / "nan.pt")


def test_what_open_clip_says_of_weights(config, tmp_path, monkeypatch):
    name, tags = "ViT-L-14", open_clip.list_pretrained_tags_by_model("ViT-L-14")
    with pytest.raises(cgc.UsageError, match=r"different transforms of pictures; give transform \(--transform\), one of openai"):
        _openclip_export._transform_of(open_clip, name, None)
    assert [_openclip_export._transform_of(open_clip, name, tag)["mean"][0] for tag in ("openai", "laion2b_s32b_b82k")] == [0.48145466, .5]
    (config.parent / "export_test_vocabulary.json").write_text(json.dumps({**CONFIG, "text_cfg": {**CONFIG["text_cfg"], "vocab_size": 999}}))
    with pytest.raises(cgc.UsageError, match="makes the id 49407, and its vocab_size is 999"):
        export(tmp_path / "a", config.parent / "export_test_vocabulary.json")
    state = trained(force_image_size=48).state_dict()
    torch.save(state, tmp_path / "larger.pt")
    with pytest.warns(UserWarning, match=r"visual.positional_embedding was resized from \[10, 32\] to \[5, 32\]"):
        export(tmp_path / "resized", config, checkpoint=tmp_path / "larger.pt")
    monkeypatch.setattr(open_clip, "create_model", lambda *_, **__: warnings.warn("QuickGELU mismatch between", UserWarning))
    with pytest.raises(cgc.UsageError, match="were trained with QuickGELU, and ViT-L-14 has GELU"):
        _openclip_export._created(open_clip, name, "openai")
    monkeypatch.setattr(open_clip, "create_model", lambda *_, **__: open(tmp_path / "no network"))
    for given, tag, message in ((name, "openai", r"fetch the weights from https://\S+openai\S* where .* give the file as the checkpoint"),
                                (name, "no_tag", f"its pretrained tags are {tags[0]}, "), ("export_test", "tag", "export_test has no pretrained tags"),
                                ("hf-hub:a/b", None, "fetch the repository a/b where there is one, and give local-dir:FOLDER")):
        with pytest.raises(cgc.UsageError, match=message):
            _openclip_export._created(open_clip, given, tag)


def test_a_configuration_is_known_during_its_export_alone(config, tmp_path):
    before = open_clip.get_model_config("ViT-B-32")
    (tmp_path / "ViT-B-32.json").write_text(json.dumps({**CONFIG, "vision_cfg": {"pach_size": 3}}))
    with pytest.raises(cgc.UsageError, match="pach_size"):
        export(tmp_path / "a", tmp_path / "ViT-B-32.json")
    (tmp_path / "ViT-B-32.json").write_bytes(b"\xff")
    with pytest.raises(cgc.InvalidFileError, match="ViT-B-32.json is missing or damaged"):
        export(tmp_path / "a", tmp_path / "ViT-B-32.json")
    assert open_clip.get_model_config("ViT-B-32") == before


def test_towers_of_a_model():
    """encode_text() of CoCa normalizes by default."""
    given = []
    method = lambda value, normalize=True: given.append((value.shape, normalize))
    model = types.SimpleNamespace(encode_image=method, encode_text=method)
    towers = _openclip_export._towers(model, cgc.Preprocess({"size": 8}), lambda text: numpy.zeros((1, 5), numpy.int64), "cpu")
    for tower in towers:
        tower.function(**tower.examples[0])
    assert given == [((1, 3, 8, 8), False), ((1, 5), False)]


@pytest.mark.parametrize("function, message", [
    (lambda image: image * 3 if image.shape[0] == 1 else image + 1, "does something else with a batch of 1"),
    (lambda image: image[:, None], r"gives \[1, 1, 3\] for image \[1, 3\]"), (lambda image: [image], "gives list"),
    (lambda image: image @ image, "torch cannot run encode_image of the model for image .*RuntimeError")])
def test_a_function_that_is_no_tower(tmp_path, function, message):
    with pytest.raises(cgc.UsageError, match=message):
        _towers.compile_towers(torch.nn.Module(), [_towers.Tower("encode_image", function, [{"image": torch.ones(2, 3)}])], (1, 4), "fp32", "cuda", (),
                               tmp_path)


def test_what_does_not_fit_is_refused(config, tmp_path):
    with pytest.raises(cgc.UsageError, match="the seed is 99999999999999999999; give a number"):
        export(tmp_path / "a", config, seed=99999999999999999999)
    (tmp_path / "bad.npz").write_bytes(b"no checkpoint")
    with pytest.raises(cgc.UsageError, match="open_clip cannot make export_test with .*bad.npz"):
        export(tmp_path / "a", config, checkpoint=tmp_path / "bad.npz")
    (tmp_path / "bad.npz").unlink()
    with pytest.raises(cgc.UsageError, match="did you mean ViT-B-32"):
        cgc.openclip.export(tmp_path / "a", "ViT-B-33")
    with pytest.raises(cgc.UsageError, match="has no pretrained tags|its pretrained tags are"):
        cgc.openclip.export(tmp_path / "a", "RN50", pretrained="no_such_tag")
    with pytest.raises(cgc.UsageError, match="give one of them"):
        export(tmp_path / "a", config, pretrained="openai", checkpoint="x.pt")
    with pytest.raises(cgc.UsageError, match="give the checkpoint, too"):
        export(tmp_path / "a", config, ema=True)
    with pytest.raises(cgc.InvalidFileError, match="missing.json: no such file"):
        cgc.openclip.export(tmp_path / "a", str(tmp_path / "missing.json"))
    assert not list(tmp_path.iterdir())
    for content, message in (("{", "bad.json is missing or damaged .*give a configuration"), ("[1]", "no configuration of open_clip: it is no"),
                             ('{"embed_dim": 3}', "it has no text_cfg, vision_cfg"),
                             (json.dumps({**CONFIG, "vision_cfg": {"pach_size": 3}}), "open_clip cannot make bad: .*pach_size")):
        (tmp_path / "bad.json").write_text(content)
        with pytest.raises(cgc.Error, match=message):
            cgc.openclip.export(tmp_path / "a", str(tmp_path / "bad.json"))
        (tmp_path / "bad.json").unlink()
    assert not list(tmp_path.iterdir())
    (tmp_path / "a").mkdir()
    for force in (False, True):  # It is no model folder.
        with pytest.raises(cgc.UsageError, match="exists; give another name"):
            export(tmp_path / "a", config, force=force)


def test_the_command(config, tmp_path):
    folder = tmp_path / "clip"
    command = [*CGC, "export", folder, "--openclip", config, "--batch", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    before = card(folder)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == cgc.Code.USAGE and "force (--force)" in done.stderr and "Traceback" not in done.stderr
    done = subprocess.run([*command, "--force", "--seed", "5"], capture_output=True, text=True)
    assert done.returncode == 0 and card(folder)["identity"] != before["identity"]
    assert [each.name for each in tmp_path.iterdir()] == ["clip"]
    done = subprocess.run([*CGC, "export", folder, "--hf", tmp_path, "--ema"], capture_output=True, text=True)
    assert done.returncode == 2 and "--ema is for --openclip" in done.stderr


@pytest.mark.parametrize("replace", [False, True])
def test_what_appears_during_an_export_is_kept(tmp_path, replace):
    folder = tmp_path / "made" / "clip"
    with pytest.raises(cgc.UsageError, match="exists; give another name"), _folder.writing(folder, replace):
        folder.mkdir()
        (folder / "own").touch()
    assert [path.name for path in (tmp_path / "made").rglob("*")] == ["clip", "own"]


def test_a_model_folder_is_replaced_as_a_whole(tmp_path):
    folder, link = tmp_path / "clip", tmp_path / "link"
    folder.mkdir()
    (folder / "model.json").touch()
    link.symlink_to(folder)
    with pytest.raises(OSError), _folder.writing(folder, True) as (scratch, _):
        scratch.rmdir()
    assert (folder / "model.json").is_file()
    with _folder.writing(link, True) as (scratch, _):
        (scratch / "new").touch()
    assert [path.name for path in folder.iterdir()] == ["new"] and link.is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"clip", "link"}


def test_an_export_that_is_ended_leaves_nothing(tmp_path):
    program = ("import pathlib, sys, time\nfrom cgc import _folder\nwith _folder.writing(pathlib.Path(sys.argv[1]), False):\n"
               "    print('writing', flush=True); time.sleep(600)")
    for number, left in ((signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGKILL, 1)):
        with subprocess.Popen([sys.executable, "-c", program, tmp_path / "made" / "clip"], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            with pytest.raises(KeyError), _folder.writing(tmp_path / "made" / "clip", False):
                assert len(list((tmp_path / "made").iterdir())) == 2  # Neither removes the other's.
                raise KeyError
            process.send_signal(number)
        assert len(list(tmp_path.rglob(".clip.*"))) == left and (tmp_path / "made").exists() == left
    with _folder.writing(tmp_path / "made" / "clip", False):
        pass
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["clip"]


def texts(count):
    """Texts of words, Unicode, HTML, emoji and special tokens: the same on every machine."""
    random = numpy.random.default_rng(0)
    words = ("a photo of the cat dog's don't I'll <start_of_text> <END_OF_TEXT> </s> [CLS] &amp; &lt;b&gt; 12345 3.14 ﬁ naïve café 日本語 한국어 🙂 "
             "👩‍👩‍👧 ﻿ â€œquotesâ€ ſ İ ǅ \ud83d\ude42 \ud800 __init__ #tag http://x.y/z?q=1 \t \n \x00 ½ Ⅷ ١٢٣ \U0001F9FF \u0378").split(" ")
    made = ["", " ", *words]
    while len(made) < count:
        if random.random() < .7:
            made.append(" ".join(random.choice(words, random.integers(1, 40))))
        else:
            tops = random.choice([0x80, 0x250, 0x3000, 0x110000], random.integers(1, 60))
            made.append("".join(chr(random.integers(32, top)) for top in tops))
    return made


def test_ids_equal_those_of_open_clip(tmp_path):
    given = texts(3000)
    for clean in ("lower", "whitespace", "canonicalize"):
        own = open_clip.SimpleTokenizer(clean=clean, context_length=20, additional_special_tokens=["<extra>"])
        _tokenizer.write(own, tmp_path / clean)
        assert numpy.array_equal(_tokenizer.read(tmp_path / clean)(given), own(given)), clean


@pytest.fixture(scope="module")
def fast(tmp_path_factory):
    """A fast tokenizer, trained on texts()."""
    import tokenizers
    made = tokenizers.Tokenizer(tokenizers.models.Unigram())
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    made.train_from_iterator([text for text in texts(2000) if text.isascii()], tokenizers.trainers.UnigramTrainer(vocab_size=800, special_tokens=special, unk_token="<unk>"))
    made.post_processor = tokenizers.processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    folder = tmp_path_factory.mktemp("fast")
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", sep_token="</s>",
                                         model_max_length=40).save_pretrained(folder)
    return folder


def test_ids_equal_those_of_transformers(fast, tmp_path):
    given = texts(3000)
    for number, options in enumerate([{"clean": "canonicalize"}, {"clean": "whitespace", "strip_sep_token": True},
                                      {"padding_side": "left", "truncation_side": "left"}]):
        own = open_clip.tokenizer.HFTokenizer(str(fast), context_length=16, **options)
        folder = tmp_path / str(number)
        _tokenizer.write(own, folder)
        assert numpy.array_equal(_tokenizer.read(folder)(given), own(given)), options
    plain = transformers.AutoTokenizer.from_pretrained(fast)
    _tokenizer.write_transformers(plain, 40, tmp_path / "plain")
    mine, encodable = _tokenizer.read(tmp_path / "plain"), [text for text in given if text.isprintable()]
    want = plain(encodable, padding="max_length", truncation=True, max_length=40, return_tensors="np").input_ids
    assert numpy.array_equal(mine(encodable), want)
    with pytest.raises(cgc.UsageError, match="text 1 holds half of a surrogate pair"):
        mine(["a", "\ud800"])


@pytest.mark.parametrize("side", ["left", "right"])
def test_masks_equal_those_of_transformers(fast, tmp_path, side):
    own = transformers.AutoTokenizer.from_pretrained(fast, padding_side=side)
    _tokenizer.write_transformers(own, 40, tmp_path / "masked", [16, 40])
    given = ["a", "the dog's photo", "", "a photo of the cat " * 30]
    for rows, (ids, mask) in _tokenizer.read(tmp_path / "masked").batches(given, 3):
        want = own([given[row] for row in rows], padding="max_length", truncation=True, max_length=ids.shape[1], return_tensors="np")
        assert numpy.array_equal(ids, want.input_ids) and numpy.array_equal(mask, want.attention_mask)


def test_the_cache_of_a_tokenizer_has_a_bound(plans):
    tokenizer = _tokenizer.read(plans / "clip" / "tokenizer")
    tokenizer(" ".join(map(str, range(99))))
    assert 0 < tokenizer._ids_of.cache_info().currsize <= tokenizer._ids_of.cache_info().maxsize == 65536


def distance(got, want):
    return numpy.linalg.norm(got - want) / numpy.linalg.norm(want)


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token", "max_tokens"])
def test_an_encoder_of_texts_is_pooled_as_its_modules_say(fast, tmp_path, pooling):
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=800, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48,
                                     max_position_embeddings=64)
    bert = transformers.BertModel(config, add_pooling_layer=False).eval()
    source = tmp_path / "bert"
    bert.save_pretrained(source)
    tokenizer = transformers.AutoTokenizer.from_pretrained(fast)
    tokenizer.save_pretrained(source)
    modules = [{"path": "", "type": "sentence_transformers.models.Transformer"},
               {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
               {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]
    (source / "modules.json").write_text(json.dumps(modules))
    (source / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 24, "do_lower_case": False}))
    (source / "1_Pooling").mkdir()
    (source / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, f"pooling_mode_{pooling}": True}))
    cgc.huggingface.export(tmp_path / "folder", source, batch=(1, 4))
    given = ["a cat", "", "the dog's photo " * 30, *[f"a photo of {number}" for number in range(9)]]
    with cgc.load(tmp_path / "folder", executor="reference") as model:
        got = model.encode_text(given)
        assert {bucket.inputs[0][1] for bucket in model.session.entries["encode_text"].buckets} == {16, 24}
    inputs = tokenizer(given, padding=True, truncation=True, max_length=24, return_tensors="pt")
    with torch.no_grad():
        states = bert(input_ids=inputs.input_ids, attention_mask=inputs.attention_mask).last_hidden_state
    mask = inputs.attention_mask.unsqueeze(-1)
    want = {"mean_tokens": (states * mask).sum(1) / mask.sum(1), "cls_token": states[:, 0],
            "max_tokens": torch.where(mask == 0, -torch.inf, states).max(1).values}[pooling]
    assert distance(got, torch.nn.functional.normalize(want).numpy()) < 1e-5
    other = "max_tokens" if pooling == "mean_tokens" else "mean_tokens"
    (source / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{other}": True}))
    cgc.huggingface.export(tmp_path / "other", source, batch=1)
    assert card(tmp_path / "other")["identity"] != card(tmp_path / "folder")["identity"]
    (source / "modules.json").write_text(json.dumps([*modules, {"path": "3", "type": "sentence_transformers.models.Dense"}]))
    with pytest.raises(cgc.UsageError, match="does not run the module sentence_transformers.models.Dense"):
        cgc.huggingface.export(tmp_path / "dense", source)


SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
PIXELS = {"do_normalize": True, "do_rescale": True, "do_resize": True, "image_mean": [.5, .4, .3], "image_std": [.2, .3, .4], "resample": 3,
          "size": {"height": 32, "width": 32}}


def save(model, folder, fast=None, **tokenizer):
    """A folder of transformers, with a tokenizer that has these attributes."""
    model.save_pretrained(folder)
    if fast is None:
        (folder / "preprocessor_config.json").write_text(json.dumps(PIXELS))
        return folder
    made = transformers.AutoTokenizer.from_pretrained(fast)
    for name, value in tokenizer.items():
        setattr(made, name, value)
    made.save_pretrained(folder)
    return folder


@pytest.fixture
def bert(fast, tmp_path):
    torch.manual_seed(0)
    return save(transformers.BertModel(transformers.BertConfig(vocab_size=800, max_position_embeddings=64, **SIZES)), tmp_path / "bert", fast)


means = pytest.mark.filterwarnings("ignore:.*its vectors are means over tokens")


@means
@pytest.mark.parametrize("change, message", [
    (lambda weights: {f"foo.{name}": value for name, value in weights.items()}, r"are missing or of another shape: embeddings\S+ and 20 more"),
    (lambda weights: {name: value for name, value in weights.items() if "intermediate.dense.bias" not in name},
     "missing or of another shape: encoder.layer.0.intermediate.dense.bias; give"),
    (lambda weights: {**weights, "embeddings.word_embeddings.weight": torch.zeros(800, 16)}, "of another shape: embeddings.word_embeddings.weight"),
    (lambda weights: {**weights, "embeddings.LayerNorm.bias": torch.full((32,), torch.nan)}, "embeddings.LayerNorm.bias has elements that are NaN")])
def test_weights_that_a_model_of_transformers_lacks_are_not_made(bert, tmp_path, change, message):
    from safetensors.torch import load_file, save_file
    save_file(change(load_file(bert / "model.safetensors")), bert / "model.safetensors", {"format": "pt"})
    with pytest.raises(cgc.InvalidFileError, match=message):
        cgc.huggingface.export(tmp_path / "folder", bert, batch=1)
    assert [path.name for path in tmp_path.iterdir()] == ["bert"]


@means
def test_weights_that_no_tower_reads_do_not_count(bert, tmp_path):
    from safetensors.torch import load_file, save_file
    weights = load_file(bert / "model.safetensors")
    identities = []
    for number in range(3):
        without = {name: value for name, value in weights.items() if number == 0 or not name.startswith("pooler.")}
        save_file(without, bert / "model.safetensors", {"format": "pt"})
        torch.manual_seed(number)
        identities.append(card(cgc.huggingface.export(tmp_path / str(number), bert, batch=1))["identity"])
    assert len({*identities}) == 1


def test_the_pooling_without_modules_and_in_either_form(bert, tmp_path):
    with pytest.warns(UserWarning, match="its vectors are means over tokens"):
        assert card(cgc.huggingface.export(tmp_path / "none", bert, batch=1))["architecture"]["pooling"] == "mean"
    (bert / "1_Pooling").mkdir()
    (bert / "modules.json").write_text(json.dumps([{"path": "", "type": "x.Transformer"}, {"path": "1_Pooling", "type": "x.Pooling"}]))
    for number, form in enumerate([{"pooling_mode": "max"}, {"pooling_mode_max_tokens": True, "pooling_mode_mean_tokens": False}]):
        (bert / "1_Pooling/config.json").write_text(json.dumps(form))
        assert card(cgc.huggingface.export(tmp_path / str(number), bert, batch=1))["architecture"]["pooling"] == "max"


BAD_SETTINGS = {
    "modules.json": [({"a": 1}, "is no list of modules"), ([], "its modules are none"), ([{"type": 3, "path": ""}], "is no list of modules"),
                     ([{"type": "x.Transformer", "path": ""}], "its modules are Transformer, and cgc runs")],
    "config.json": [([1], "holds list, not an object")],
    "tokenizer_config.json": [({"model_max_length": 10 ** 30, "tokenizer_class": "PreTrainedTokenizerFast"}, "has no token that pads")],
    "sentence_bert_config.json": [([], "holds list"), ({"max_seq_length": "9"}, "max_seq_length is '9'"), ({"do_lower_case": True}, "do_lower_case is set")],
    "1_Pooling/config.json": [({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "and this model pooling_mode_mean_tokens, "),
                              ({"pooling_mode": "lasttoken"}, "and this model pooling_mode_lasttoken"), ({}, "and this model pooling_mode_None")],
    "preprocessor_config.json": [({**PIXELS, "image_mean": None}, "asks for something else"), ({**PIXELS, "size": [3]}, "has a value that no processor"),
                                 ({**PIXELS, "size": {"height": 3}}, "has a value that no"), ({**PIXELS, "rescale_factor": "x"}, "has a value that no"),
                                 ({**PIXELS, "rescale_factor": 1 / 127.5}, "asks for something else"), ([], "holds list, not an object")],
}


@pytest.mark.parametrize("name, content, message", [(name, *each) for name, given in BAD_SETTINGS.items() for each in given])
def test_settings_of_transformers_that_do_not_fit_are_refused(bert, tmp_path, name, content, message):
    (bert / "1_Pooling").mkdir()
    for file, own in (("modules.json", [{"path": "", "type": "x.Transformer"}, {"path": "1_Pooling", "type": "x.Pooling"}]),
                      ("1_Pooling/config.json", {"pooling_mode": "cls"}), (name, content)):
        (bert / file).write_text(json.dumps(own))
    with pytest.raises(cgc.Error, match=message):
        cgc.huggingface.export(tmp_path / "folder", bert, batch=1)
    (bert / name).write_bytes(b"\xff")
    with pytest.raises(cgc.Error):
        cgc.huggingface.export(tmp_path / "folder", bert, batch=1)
    assert [path.name for path in tmp_path.iterdir()] == ["bert"]


@means
def test_lengths_that_a_model_of_texts_cannot_take(fast, tmp_path):
    # Positions of RoBERTa begin behind the padding.
    config = transformers.RobertaConfig(vocab_size=800, max_position_embeddings=42, pad_token_id=1, **SIZES)
    roberta = save(transformers.RobertaModel(config), tmp_path / "roberta", fast, model_max_length=10 ** 30)
    with pytest.raises(cgc.UsageError, match=r"cannot run encode_text of the model for text \[1, 42\].*set model_max_length"):
        cgc.huggingface.export(tmp_path / "folder", roberta, batch=1)
    small = transformers.T5Config(vocab_size=800, d_model=32, d_kv=16, d_ff=48, num_layers=1, num_heads=2)
    with pytest.raises(cgc.UsageError, match="T5Model has a decoder"):
        cgc.huggingface.export(tmp_path / "folder", save(transformers.T5EncoderModel(small), tmp_path / "t5", fast), batch=1)
    config = transformers.BertConfig(vocab_size=50, max_position_embeddings=64, **SIZES)
    with pytest.raises(cgc.UsageError, match=r"the tokenizer has \d+ ids, and the model 50"):
        cgc.huggingface.export(tmp_path / "folder", save(transformers.BertModel(config), tmp_path / "bert", fast), batch=1)
    config = transformers.XLNetConfig(vocab_size=800, d_model=32, n_layer=1, n_head=2, d_inner=48)  # It has no positions to run out of.
    with pytest.raises(cgc.UsageError, match="does not say how many tokens"):
        cgc.huggingface.export(tmp_path / "folder", save(transformers.XLNetModel(config), tmp_path / "xlnet", fast, model_max_length=10 ** 30))


@pytest.mark.parametrize("model", [
    lambda: transformers.ResNetModel(transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])),
    lambda: transformers.ViTMSNModel(transformers.ViTMSNConfig(image_size=32, patch_size=16, **SIZES))],
    ids=["pooled to [n, size, 1, 1]", "without a pooled output"])
def test_outputs_of_encoders_of_pictures(tmp_path, plans, model):
    torch.manual_seed(0)
    own = model().eval()
    source = save(own, tmp_path / "model")
    (source / "preprocessor_config.json").write_text(json.dumps({**PIXELS, "size": 32}))
    pictures = sorted((plans / "pictures").iterdir())
    with cgc.load(cgc.huggingface.export(tmp_path / "folder", source, batch=(1, 4)), executor="reference") as loaded, torch.no_grad():
        output = own(torch.from_numpy(loaded.preprocess(pictures).pixels))
        want = output.pooler_output.flatten(1) if "pooler_output" in output else output.last_hidden_state[:, 0]
        assert loaded.size == want.shape[1]
        assert distance(loaded.encode_image(pictures, normalize=False), want.numpy()) < 1e-5


def pixels_of_transformers(source, pictures):
    """What its processor on Pillow makes of pictures."""
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
    processor = CLIPImageProcessorPil(**json.loads((source / "preprocessor_config.json").read_text()))
    images = [Image.open(path).convert("RGB") for path in pictures]
    return numpy.concatenate([processor(images=image, return_tensors="np").pixel_values for image in images])


def test_an_encoder_of_pictures(tmp_path, plans):
    torch.manual_seed(0)
    config = transformers.Dinov2Config(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14)
    dino = transformers.Dinov2Model(config).eval()
    source = tmp_path / "dino"
    dino.save_pretrained(source)
    (source / "preprocessor_config.json").write_text(json.dumps({
        "crop_size": {"height": 28, "width": 28}, "do_center_crop": True, "do_normalize": True, "do_rescale": True, "do_resize": True,
        "image_mean": [.485, .456, .406], "image_std": [.229, .224, .225], "resample": 3, "size": {"shortest_edge": 37}}))
    cgc.huggingface.export(tmp_path / "folder", source, batch=(1, 4))
    pictures = sorted((plans / "pictures").iterdir())
    with cgc.load(tmp_path / "folder", executor="reference") as model, torch.no_grad():
        pixels = torch.from_numpy(model.preprocess(pictures).pixels)
        assert numpy.allclose(pixels, pixels_of_transformers(source, pictures), atol=1e-6)
        want = torch.nn.functional.normalize(dino(pixel_values=pixels).pooler_output)
        assert distance(model.encode_image(pictures), want.numpy()) < 1e-5
        # The processes of Ray preprocess pictures apart from the model.
        encoder = cgc.ray._Encoder(str(tmp_path / "folder"), "image", True, {"executor": "reference"}, True)
        vectors, errors = encoder.encode(cgc.ray._preprocess(str(tmp_path / "folder"), [*map(str, pictures), b""]))
        assert distance(vectors[:-1], want.numpy()) < 1e-5 and [*errors] == [len(pictures)] and numpy.isnan(vectors[-1]).all()
        with pytest.raises(cgc.UsageError, match="has no encode_text"):
            model.encode_text(["a"])


def test_clip_of_transformers(fast, tmp_path, plans):
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2, "projection_dim": 16}
    config = transformers.CLIPConfig(text_config={**sizes, "vocab_size": 800, "max_position_embeddings": 20, "eos_token_id": 1},
                                     vision_config={**sizes, "image_size": 32, "patch_size": 16}, projection_dim=16)
    clip = transformers.CLIPModel(config).eval()
    source = tmp_path / "clip"
    clip.save_pretrained(source)
    tokenizer = transformers.AutoTokenizer.from_pretrained(fast)
    tokenizer.save_pretrained(source)
    with pytest.raises(cgc.InvalidFileError, match="it says how pictures are resized"):
        cgc.huggingface.export(tmp_path / "folder", source)
    settings = {"crop_size": {"height": 32, "width": 32}, "do_center_crop": True, "do_normalize": True, "do_rescale": True,
                "do_resize": True, "image_mean": [.5, .4, .3], "image_std": [.2, .3, .4], "resample": 3, "size": {"shortest_edge": 32}}
    (source / "preprocessor_config.json").write_text(json.dumps(settings))
    cgc.huggingface.export(tmp_path / "folder", source, batch=(1, 4))
    given, pictures = ["a cat", "the dog's photo " * 30], sorted((plans / "pictures").iterdir())
    with cgc.load(tmp_path / "folder", executor="reference") as model, torch.no_grad():
        inputs = tokenizer(given, padding="max_length", truncation=True, max_length=20, return_tensors="pt")
        want = torch.nn.functional.normalize(clip.get_text_features(input_ids=inputs.input_ids).pooler_output)
        assert distance(model.encode_text(given), want.numpy()) < 1e-5
        pixels = torch.from_numpy(model.preprocess(pictures).pixels)
        assert numpy.allclose(pixels, pixels_of_transformers(source, pictures), atol=1e-6)
        want = torch.nn.functional.normalize(clip.get_image_features(pixel_values=pixels).pooler_output)
        assert distance(model.encode_image(pictures), want.numpy()) < 1e-5
        assert model.card.logit_scale == pytest.approx(clip.logit_scale.exp().item())
    for name, value in {"resample": 0, "do_rescale": False, "size": {"longest_edge": 9}}.items():
        (source / "preprocessor_config.json").write_text(json.dumps({**settings, name: value}))
        with pytest.raises(cgc.UsageError, match="preprocess with transformers"):
            cgc.huggingface.export(tmp_path / "other", source)


def test_siglip_of_transformers(fast, tmp_path, plans):
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.SiglipConfig(text_config={**sizes, "vocab_size": 800, "max_position_embeddings": 16, "projection_size": 32},
                                       vision_config={**sizes, "image_size": 32, "patch_size": 16})
    siglip = transformers.SiglipModel(config).eval()
    source = tmp_path / "siglip"
    siglip.save_pretrained(source)
    tokenizer = transformers.AutoTokenizer.from_pretrained(fast)
    tokenizer.save_pretrained(source)
    (source / "preprocessor_config.json").write_text(json.dumps({
        "do_normalize": True, "do_rescale": True, "do_resize": True, "image_mean": [.5, .5, .5], "image_std": [.5, .5, .5],
        "resample": 3, "rescale_factor": 1 / 255, "size": {"height": 32, "width": 32}}))
    cgc.huggingface.export(tmp_path / "folder", source, batch=(1, 4))
    given, pictures = ["a cat", "", "the dog's photo " * 30], sorted((plans / "pictures").iterdir())
    with cgc.load(tmp_path / "folder", executor="reference") as model, torch.no_grad():
        # SigLIP was trained without a mask, and with padding of its own.
        inputs = tokenizer(given, padding="max_length", truncation=True, max_length=16, return_tensors="pt")
        want = torch.nn.functional.normalize(siglip.get_text_features(input_ids=inputs.input_ids).pooler_output)
        assert distance(model.encode_text(given), want.numpy()) < 1e-5
        from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil
        processor = SiglipImageProcessorPil(**json.loads((source / "preprocessor_config.json").read_text()))
        images = [Image.open(path).convert("RGB") for path in pictures]
        pixels = numpy.concatenate([processor(images=image, return_tensors="np").pixel_values for image in images])
        want = torch.nn.functional.normalize(siglip.get_image_features(pixel_values=torch.from_numpy(pixels)).pooler_output)
        assert distance(model.encode_image(pictures), want.numpy()) < 1e-5
        assert model.card.logit_scale == pytest.approx(siglip.logit_scale.exp().item())
        assert model.card.logit_bias == pytest.approx(siglip.logit_bias.item())
