"""Tests what export_openclip.py says about checkpoints whose names are not the model's: checkpoint_names_test.py

A command that it advises runs, and what it writes loads.
"""
import json
import os
import re
import shlex
import sys
import tempfile
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import open_clip  # noqa: E402
import torch  # noqa: E402
from openclip_checkpoint import load_trained  # noqa: E402
from openclip_model import Failure  # noqa: E402


def load(path, name="tiny"):
    return load_trained(types.SimpleNamespace(checkpoint=path, precision="fp32"), name, open_clip)


def message(content):
    torch.save(content, "checkpoint.pt")
    try:
        load("checkpoint.pt")
    except Failure as failure:
        return str(failure)
    raise AssertionError("the checkpoint was loaded")


def advised_python(text):
    """The code of the command in the message."""
    return shlex.split(text[text.index(".venv/bin/python"):])[2]


folder = tempfile.TemporaryDirectory(prefix="checkpoint-names-")
os.chdir(folder.name)
open_clip.add_model_config(ROOT / "tests/data/tiny.json")
weights = open_clip.create_model("tiny").state_dict()


def under(prefix):
    return {prefix + name: value for name, value in weights.items()}


for prefix, content in [
    ("_orig_mod.", under("_orig_mod.")),
    ("_orig_mod.", {"state_dict": under("module._orig_mod.")}),
    ("model.", {"state_dict": under("model."), "hyper_parameters": {}}),
    ("base_model.model.", under("base_model.model.")),
    ("module.", {"n_averaged": torch.tensor(10), **under("module.")}),
    ("model.", {**under("model."), "model.lora_A": torch.zeros(2)}),
]:
    text = message(content)
    print(text)
    assert f"its names begin with '{prefix}'" in text, text
    assert ("average" in text) == ("n_averaged" in content), text
    if "model.lora_A" not in content:
        exec(advised_python(text))
        loaded = load("weights.pt").state_dict()
        assert all(torch.equal(loaded[name], value) for name, value in weights.items())

text = message({**weights, "logit_bias": torch.tensor(-10.0)})
print(text)
assert re.search(r'logit_bias.*--config, with "init_logit_bias": -10', text), text
config = json.loads((ROOT / "tests/data/tiny.json").read_text())
Path("biased.json").write_text(json.dumps({**config, "init_logit_bias": -10}))
open_clip.add_model_config(Path("biased.json"))
assert load("checkpoint.pt", "biased").logit_bias == -10
for content in [{name: value for name, value in weights.items() if name.startswith("visual.")},  # Half of the model.
                {**weights, "visual.lora_A": torch.zeros(2)},
                {**weights, "logit_scale": torch.zeros(3)}]:
    text = message(content)
    print(text)
    assert "give the --model or --config that was trained" in text, text
