# Writes one small model of each OpenCLIP family: make_families.py FOLDER [NAME...]
# Of those in SCRIPTED, also NAME.scripted.pt with the same weights.
# A small model is open_clip's own configuration with fewer and narrower layers, on smaller inputs.
import functools
import json
import sys
from argparse import Namespace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import export_openclip
import open_clip
import timm
from timm.models.vitamin import VitCfg, VitConvCfg

TEXT = {"context_length": 16, "vocab_size": 512, "width": 64, "heads": 4, "layers": 2}
VIT = {"image_size": 32, "patch_size": 16, "layers": 2, "width": 64, "head_width": 32}
VITAMIN = VitCfg(embed_dim=(16, 32, 64), depths=(1, 2, 1), stem_width=16,
                 conv_cfg=VitConvCfg(norm_layer="layernorm2d", norm_eps=1e-6), head_type="1d")
# What replaces parts of the configuration, and arguments of the timm model.
FAMILIES = {
    "ViT-B-32": ({"vision_cfg": VIT}, {}),
    "ViT-B-32-quickgelu": ({"vision_cfg": VIT}, {}),
    "ViT-H-14": ({"vision_cfg": VIT}, {}),
    "RN50": ({"vision_cfg": {"image_size": 64, "layers": [1, 2, 1, 1], "width": 16}}, {}),
    "coca_ViT-B-32": ({"embed_dim": 64, "multimodal_cfg": TEXT,
                       "vision_cfg": {**VIT, "attn_pooler_queries": 16}}, {}),
    "convnext_base": ({"vision_cfg": {"image_size": 64}},
                      {"depths": (1, 1, 2, 1), "dims": (16, 32, 48, 64)}),
    "ViT-B-16-SigLIP": ({"embed_dim": 64, "vision_cfg": {"image_size": 32}},
                        {"img_size": 32, "embed_dim": 64, "depth": 2, "num_heads": 4}),
    "EVA02-B-16": ({"vision_cfg": {"image_size": 64}},
                   {"img_size": 64, "embed_dim": 64, "depth": 2, "num_heads": 2}),
    "MobileCLIP-S1": ({"vision_cfg": {"image_size": 64}},
                      {"layers": (1, 1, 1, 2), "embed_dims": (16, 32, 64, 128)}),
    "ViTamin-B": ({"vision_cfg": {"image_size": 64}},
                  {"img_size": 64, "embed_dim": 64, "depth": 2, "num_heads": 2, "embed_cfg": VITAMIN}),
}


SCRIPTED = ("ViT-B-32", "RN50", "coca_ViT-B-32", "convnext_base")


def small(config, changes):
    """The configuration with `changes`, the small text tower and an embedding as narrow as that."""
    config = {**config, "embed_dim": 32, "text_cfg": {**config["text_cfg"], **TEXT}}
    for key, value in changes.items():
        config[key] = {**config[key], **value} if isinstance(value, dict) else value
    return config


def main():
    folder, create_model = Path(sys.argv[1]), timm.create_model
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or FAMILIES:
        changes, arguments = FAMILIES[name]
        config = folder / f"small_{name}.json"
        config.write_text(json.dumps(small(open_clip.get_model_config(name), changes)))
        timm.create_model = functools.partial(create_model, **arguments)
        for script in (False, True) if name in SCRIPTED else (False,):
            out = folder / (f"{name}.scripted.pt" if script else f"{name}.pt")
            export_openclip.export(Namespace(model=None, config=str(config), precision="fp32",
                                             out=str(out), checkpoint=None, device="cpu", seed=0,
                                             batch=2, script=script))


main()
