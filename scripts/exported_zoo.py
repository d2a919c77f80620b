#!/usr/bin/env python3
"""Compiles exported programs of transformers' encoders, timm, torchvision and open_clip, and compares the plans with torch.

    exported_zoo.py [--only PATTERN] [--jobs N] [--cgc build/release/bin/cgc]

Each model has random weights and is exported by torch.export with a dynamic batch. cgc compiles the program for another
batch than that of the export, and runs it. A model agrees if the relative L2 of every output is at most 1e-5. Those of
transformers are small configurations, with masks where they take them; they also run for cuda, by the reference executor.
Where torch finds a GPU, all models run for cuda on it.
The results are JSON files in build/release/exported_zoo, which a later call does not repeat.

Exit code: 0 if every chosen model agrees, else 1.
"""
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import model_zoo
from model_zoo import ROOT, SECONDS

EXPORTED, RUN = 2, 3  # Batches.
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
TEXT = {**SMALL, "vocab_size": 128, "max_position_embeddings": 64, "pad_token_id": 1}
VISION = {**SMALL, "image_size": 32, "patch_size": 8}
T5 = {"vocab_size": 128, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
AUDIO = {**SMALL, "conv_dim": (16, 16), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2,
         "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}
# The model, its configuration, and the kind of its inputs.
TRANSFORMERS = {
    "bert": ("BertModel", "BertConfig", TEXT, "text"),
    "roberta": ("RobertaModel", "RobertaConfig", TEXT, "text"),
    "xlm-roberta": ("XLMRobertaModel", "XLMRobertaConfig", TEXT, "text"),
    "camembert": ("CamembertModel", "CamembertConfig", TEXT, "text"),
    "mpnet": ("MPNetModel", "MPNetConfig", TEXT, "text"),
    "distilbert": ("DistilBertModel", "DistilBertConfig",
                   {"vocab_size": 128, "max_position_embeddings": 64, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}, "text"),
    "electra": ("ElectraModel", "ElectraConfig", {**TEXT, "embedding_size": 16}, "text"),
    "albert": ("AlbertModel", "AlbertConfig", {**TEXT, "embedding_size": 16}, "text"),
    "deberta": ("DebertaModel", "DebertaConfig", {**TEXT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}, "text"),
    "deberta-v2": ("DebertaV2Model", "DebertaV2Config",
                   {**TEXT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8}, "text"),
    "ernie": ("ErnieModel", "ErnieConfig", TEXT, "text"),
    "layoutlm": ("LayoutLMModel", "LayoutLMConfig", TEXT, "text"),
    "megatron-bert": ("MegatronBertModel", "MegatronBertConfig", TEXT, "text"),
    "roformer": ("RoFormerModel", "RoFormerConfig", TEXT, "text"),
    "squeezebert": ("SqueezeBertModel", "SqueezeBertConfig", {**TEXT, "embedding_size": 32}, "text"),
    "modernbert": ("ModernBertModel", "ModernBertConfig", {**TEXT, "attn_implementation": "sdpa"}, "text"),
    "esm": ("EsmModel", "EsmConfig", {**TEXT, "mask_token_id": 5, "position_embedding_type": "rotary"}, "text"),
    "t5-encoder": ("T5EncoderModel", "T5Config", T5, "text"),
    "mt5-encoder": ("MT5EncoderModel", "MT5Config", T5, "text"),
    "umt5-encoder": ("UMT5EncoderModel", "UMT5Config", T5, "text"),
    "clip-text": ("CLIPTextModel", "CLIPTextConfig", {**TEXT, "eos_token_id": 2}, "text"),
    "siglip-text": ("SiglipTextModel", "SiglipTextConfig", TEXT, "text"),
    "clip-vision": ("CLIPVisionModel", "CLIPVisionConfig", VISION, "images"),
    "siglip-vision": ("SiglipVisionModel", "SiglipVisionConfig", VISION, "images"),
    "dinov2": ("Dinov2Model", "Dinov2Config", VISION, "images"),
    "dinov2-interpolated": ("Dinov2Model", "Dinov2Config", {**VISION, "image_size": 64}, "images"),
    "dinov2-registers": ("Dinov2WithRegistersModel", "Dinov2WithRegistersConfig", VISION, "images"),
    "vit": ("ViTModel", "ViTConfig", VISION, "images"),
    "vit-mae": ("ViTMAEModel", "ViTMAEConfig", {**VISION, "mask_ratio": 0.0}, "masked images"),
    "deit": ("DeiTModel", "DeiTConfig", VISION, "images"),
    "beit": ("BeitModel", "BeitConfig", {**VISION, "use_relative_position_bias": True}, "images"),
    "data2vec-vision": ("Data2VecVisionModel", "Data2VecVisionConfig", VISION, "images"),
    "blip-vision": ("BlipVisionModel", "BlipVisionConfig", VISION, "images"),
    "ijepa": ("IJepaModel", "IJepaConfig", VISION, "images"),
    "swin": ("SwinModel", "SwinConfig", {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2],
                                         "num_heads": [2, 4], "window_size": 4}, "images"),
    "convnext": ("ConvNextModel", "ConvNextConfig", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}, "images"),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", AUDIO, "audio"),
    "hubert": ("HubertModel", "HubertConfig", AUDIO, "audio"),
}


def build_transformers(name):
    import torch
    import transformers
    model, config, options, kind = TRANSFORMERS[name]
    torch.manual_seed(0)
    model = getattr(transformers, model)(getattr(transformers, config)(**options)).eval()

    def inputs(batch):
        torch.manual_seed(batch)
        if kind == "audio":
            return {"input_values": torch.randn(batch, 400)}
        if kind != "text":
            images = {"pixel_values": torch.randn(batch, 3, 32, 32)}
            return images if kind == "images" else {**images, "noise": torch.rand(batch, 16)}
        tokens = torch.randint(6, 128, (batch, 12))
        if "siglip" in name:
            return {"input_ids": tokens}
        lengths = torch.arange(batch).unsqueeze(1) % 5 + 8
        return {"input_ids": tokens, "attention_mask": (torch.arange(12) < lengths).long()}

    return model, inputs


def build(name):
    """The model, and a function from a batch to its inputs by name."""
    import inspect
    import torch
    library, _, arch = name.partition("/")
    if library == "transformers":
        return build_transformers(arch)
    model, example = model_zoo.build(name)
    names = list(inspect.signature(model.forward).parameters)

    def inputs(batch):
        torch.manual_seed(batch)
        return {key: torch.randn(batch, *x.shape[1:]) if x.is_floating_point() else x.expand(batch, *x.shape[1:]).contiguous()
                for key, x in zip(names, example)}

    return model, inputs


def relative_l2(got, want):
    import numpy
    difference = numpy.linalg.norm(got.astype("f8") - want.astype("f8"))
    return float(difference / (numpy.linalg.norm(want.astype("f8")) or 1))


def run_one(name, cgc):
    """Builds, exports, compiles and compares a model; returns its result."""
    warnings.simplefilter("ignore")
    import numpy
    import torch
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        try:
            model, inputs = build(name)
            batch, given = torch.export.Dim("batch", min=1, max=64), inputs(EXPORTED)
            with torch.no_grad():
                program = torch.export.export(model, (), kwargs=given, dynamic_shapes={key: {0: batch} for key in given})
                torch.export.save(program, folder / "m.pt2")
                wanted = [x.numpy() for x in torch.utils._pytree.tree_leaves(model(**inputs(RUN))) if isinstance(x, torch.Tensor)]
        except Exception as error:
            return {"status": "no export", "message": f"{type(error).__name__}: {error}".strip().split("\n")[0][:300]}
        run = []
        for key, x in inputs(RUN).items():
            numpy.save(folder / f"{key}.npy", x.numpy())
            run.append(f"--input={key}=@{folder / key}.npy")
        worst, has_gpu = 0.0, torch.cuda.is_available()
        for target in ("cpu", "cuda") if has_gpu or name.startswith("transformers/") else ("cpu",):
            compiled = subprocess.run([cgc, "compile", folder / "m.pt2", "-o", folder / "m.cgplan", "--target", target, "--batch", str(RUN)],
                                      capture_output=True, text=True, timeout=SECONDS)
            if compiled.returncode != 0:
                errors = [line for line in compiled.stderr.splitlines() if "error: " in line]
                return {"status": "refused" if compiled.returncode == 4 else "failed",
                        "message": f"{target}: " + (errors or [compiled.stderr[-300:]])[0].strip()}
            executor = ["--executor", "reference"] if target == "cuda" and not has_gpu else []
            done = subprocess.run([cgc, "run", folder / "m.cgplan", *run, "--output", folder / "y.npy", *executor],
                                  capture_output=True, text=True, timeout=SECONDS)
            if done.returncode != 0:
                return {"status": "failed", "message": f"{target}: {done.stderr.strip()[:300]}"}
            paths = [folder / "y.npy"] if len(wanted) == 1 else [folder / f"y.{i}.npy" for i in range(len(wanted))]
            if missing := [path.name for path in paths if not path.exists()]:
                return {"status": "failed", "message": f"{target}: of {len(wanted)} outputs, {missing[0]} is missing"}
            errors = [relative_l2(numpy.load(path), want) for path, want in zip(paths, wanted)]
            worst = max(worst, *errors)
            if worst > 1e-5:
                return {"status": "differs", "relative_l2": worst, "message": target}
        return {"status": "agrees", "relative_l2": worst}


def main():
    args = model_zoo.parse_arguments(__doc__.splitlines()[0], "transformers/*")
    if args.one:
        print(json.dumps(run_one(args.one, args.cgc)))
        return
    names = [f"transformers/{n}" for n in TRANSFORMERS] + model_zoo.all_names()
    results = model_zoo.run_chosen(names, args, ROOT / "build/release/exported_zoo")
    agree = sum(result["status"] == "agrees" for result in results.values())
    print(f"{agree} of {len(results)} agree")
    sys.exit(0 if agree == len(results) else 1)


if __name__ == "__main__":
    main()
