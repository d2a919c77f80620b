# Writes the models of docs/supported-models.md with random weights: make_families.py FOLDER [--real] [NAME...]
# NAME.inputs holds the arguments of cgc's --input for NAME.pt. NAME.scripted is the model from torch.jit.script.
# Without --real the models are small: the same configuration with fewer and narrower layers, on smaller inputs.
import argparse
import functools
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import export_openclip
import open_clip
import timm
import torch
import torchvision
import transformers
from timm.models.vitamin import VitCfg, VitConvCfg

TEXT = {"context_length": 16, "vocab_size": 512, "width": 64, "heads": 4, "layers": 2}
VIT = {"image_size": 32, "patch_size": 16, "layers": 2, "width": 64, "head_width": 32}
VITAMIN = VitCfg(embed_dim=(16, 32, 64), depths=(1, 2, 1), stem_width=16,
                 conv_cfg=VitConvCfg(norm_layer="layernorm2d", norm_eps=1e-6), head_type="1d")
# The changes that make a model small: replaced parts of its configuration, and arguments of the timm model.
OPENCLIP = {
    "ViT-B-32": ({"vision_cfg": VIT}, {}),
    "ViT-B-32-quickgelu": ({"vision_cfg": VIT}, {}),
    "ViT-L-14": ({"vision_cfg": VIT}, {}),
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
    "roberta-ViT-B-32": ({"vision_cfg": VIT}, {}),
}
# Small models only, not in docs/supported-models.md: towers with other head widths or other pooling.
TOWERS = {
    "ViT-bigG-14-CLIPA": ({"vision_cfg": {**VIT, "width": 208, "head_width": 104}}, {}),
    "ViT-H-14-worldwide": ({"vision_cfg": {**VIT, "width": 176, "head_width": 88}}, {}),
    "ViT-SO400M-14-SigLIP": ({"embed_dim": 144, "text_cfg": {**TEXT, "width": 144, "heads": 2},
                              "vision_cfg": {"image_size": 28}},
                             {"img_size": 28, "embed_dim": 144, "depth": 2, "num_heads": 2}),
}
SMALL = {**OPENCLIP, **TOWERS}
SCRIPTED = ("ViT-B-32", "RN50", "coca_ViT-B-32", "convnext_base")
# The configuration of roberta-base, which transformers would otherwise download.
ROBERTA = {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
ROBERTA_SMALL = {**ROBERTA, "vocab_size": 512, "max_position_embeddings": 40, "hidden_size": 64,
                 "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
BERT_SMALL = {"vocab_size": 512, "max_position_embeddings": 32, "hidden_size": 64, "num_hidden_layers": 2,
              "num_attention_heads": 4, "intermediate_size": 128}
CREATE_TIMM_MODEL = timm.create_model


def openclip_config(name, real):
    config = open_clip.get_model_config(name)
    changes = {} if real else {"embed_dim": 32, "text_cfg": TEXT, **SMALL[name][0]}
    for key, value in changes.items():
        config[key] = {**config[key], **value} if isinstance(value, dict) else value
    return config


def make_openclip(name, out, args):
    base = name.removesuffix(".scripted")
    config = openclip_config(base, args.real)
    text = config["text_cfg"]
    if "hf_model_name" in text:
        text["hf_model_name"] = str(out.with_suffix(".hf").resolve())
        transformers.RobertaConfig(**(ROBERTA if args.real else ROBERTA_SMALL)).save_pretrained(text["hf_model_name"])
    path = out.with_name(f"config_{base}.json")
    path.write_text(json.dumps(config))
    timm.create_model = functools.partial(CREATE_TIMM_MODEL, **({} if args.real else SMALL[base][1]))
    return export_openclip.export(argparse.Namespace(
        model=None, config=str(path), precision="fp32", out=str(out), checkpoint=None, device="cpu",
        seed=0, batch=2, script=name != base))


def image_model(make_real, make_small, small_side):
    def make(real):
        side = 224 if real else small_side
        return make_real() if real else make_small(), lambda batch: {"x": torch.randn(batch, 3, side, side)}
    return make


def bert(real):
    config = transformers.BertConfig(return_dict=False, **({} if real else BERT_SMALL))
    tokens = 128 if real else 16

    def inputs(batch):
        mask = torch.ones(batch, tokens, dtype=torch.int64)
        mask[:, -3:] = 0
        return {"input_ids": torch.randint(config.vocab_size, (batch, tokens)), "attention_mask": mask}
    return transformers.BertModel(config), inputs


models = torchvision.models
# Other models: functions that take whether to make the real size and return the model and its inputs for a batch.
OTHERS = {
    "resnet50": image_model(models.resnet50, lambda: models.ResNet(
        models.resnet.Bottleneck, [1, 2, 1, 1], num_classes=16, width_per_group=16), 64),
    "vit_b_16": image_model(models.vit_b_16, lambda: models.VisionTransformer(
        32, 16, 2, 2, 64, 128, num_classes=16), 32),
    # Windows that do not fit the image need padding, and shifted windows need a mask.
    "swin_t": image_model(models.swin_t, lambda: models.SwinTransformer(
        [4, 4], 16, [2, 2], [2, 4], [6, 6], num_classes=16), 64),
    "bert": bert,
}


def make_other(name, out, args):
    torch.manual_seed(0)
    model, inputs = OTHERS[name](args.real)
    export_openclip.spread_constants(model, torch, seed=0)
    model = model.eval()
    traced = torch.jit.trace(model, tuple(inputs(2).values()), check_trace=False, strict=False)
    arguments = tuple(inputs(3).values())  # Another batch size: nothing of the traced one is in the file.
    wanted, got = (export_openclip.outputs(f(*arguments), torch) for f in (model, traced))
    for key, value in wanted.items():
        torch.testing.assert_close(got[key], value)
    traced.save(str(out))
    return inputs(1)


def argument(name, tensor):
    dtype = {torch.float32: "f32", torch.int64: "i64"}[tensor.dtype]
    return f"{name}={dtype}[{','.join(map(str, [1, *tensor.shape[1:]]))}]\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--real", action="store_true", help="in real size")
    parser.add_argument("--list", action="store_true", help="only print the names of the traced models")
    args = parser.parse_intermixed_args()  # options may stand between folder and names
    if args.list:
        print(*OPENCLIP, *OTHERS)
        return
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.names or [*SMALL, *OTHERS, *(f"{name}.scripted" for name in SCRIPTED)]:
        out = args.folder / f"{name}.pt"
        with torch.no_grad():
            inputs = (make_other if name in OTHERS else make_openclip)(name, out, args)
        out.with_suffix(".inputs").write_text("".join(argument(*item) for item in inputs.items()))


main()
