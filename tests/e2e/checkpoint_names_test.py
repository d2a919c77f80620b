"""Tests which checkpoints export_openclip.py takes: checkpoint_names_test.py

Those that trainers write, whose names are not the model's, and none of another model.
"""
import os
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


def load(content):
    torch.save(content, "checkpoint.pt")
    return load_trained(types.SimpleNamespace(checkpoint="checkpoint.pt", precision="fp32"), "tiny", open_clip)


def under(prefix):
    return {prefix + name: value for name, value in weights.items()}


folder = tempfile.TemporaryDirectory(prefix="checkpoint-names-")
os.chdir(folder.name)
open_clip.add_model_config(ROOT / "tests/data/tiny.json")
weights = open_clip.create_model("tiny").state_dict()

for content in (weights, under("_orig_mod."), {"state_dict": under("module._orig_mod.")},
                {"state_dict": under("model."), "hyper_parameters": {}}, {"n_averaged": torch.tensor(10), **under("module.")},
                {name: value.double() for name, value in weights.items()}):
    loaded = load(content).state_dict()
    assert all(torch.equal(loaded[name], value) for name, value in weights.items())
assert load({**weights, "logit_bias": torch.tensor(-10.0)}).logit_bias == -10
for content in ({name: value for name, value in weights.items() if name.startswith("visual.")},  # Half of the model.
                under("base_model.model."), {**weights, "visual.lora_A": torch.zeros(2)}, {**weights, "logit_scale": torch.zeros(3)}):
    try:
        load(content)
    except Failure as failure:
        assert "checkpoint.pt: the weights are not those of tiny: " in str(failure), failure
        assert "give the model that was trained" in str(failure), failure
    else:
        raise AssertionError("the checkpoint was loaded")
