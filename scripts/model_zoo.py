#!/usr/bin/env python3
"""Compiles one architecture of each family of timm and torchvision, and of each configuration group of open_clip, and
compares the plans with LibTorch.

    model_zoo.py [--only PATTERN] [--jobs N] [--cgc build/release/bin/cgc]

Each model has random weights and is traced; cgc compiles it for cpu and compares it with LibTorch on random inputs. A model
agrees if the relative L2 of every output is at most 1e-5; a model that cgc refuses is refused by op and line. The results
are JSON files in build/release/zoo, which a later call does not repeat: remove a file to run its model again. The table
of all results is written to the end of docs/supported-models.md, with the commit of each cgc that made them.

Exit code: 0 if every chosen model agrees but for those in REFUSED, which have to be refused with their causes; if all
models are chosen, at least 95 of the 100 of timm and torchvision and all of open_clip have to agree. Else 1.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/supported-models.md"
HEADING = "## Architectures"
SECONDS = 1800  # For one model; the largest take minutes.

# One architecture per family, the smallest usual size of each.
TIMM = """
beit_base_patch16_224 bat_resnext26ts botnet26t_256 cait_xxs24_224 coat_tiny coatnet_0_rw_224 convformer_s18
convit_tiny convmixer_768_32 convnext_tiny convnextv2_tiny crossvit_tiny_240 cs3darknet_m cspresnet50 davit_tiny
deit3_small_patch16_224 deit_tiny_patch16_224 densenet121 dla34 dpn68 eca_nfnet_l0 edgenext_small efficientformer_l1
efficientformerv2_s0 efficientnet_b0 efficientvit_b0 ese_vovnet19b_dw eva02_tiny_patch14_224 fastvit_t8 focalnet_tiny_srf
gcvit_xxtiny ghostnet_100 gmlp_s16_224 halonet26t hardcorenas_a hgnet_tiny hiera_tiny_224 hrnet_w18_small inception_v3
lambda_resnet26t levit_128 maxvit_tiny_rw_224 mixer_b16_224 mobilenetv3_large_100 mobilevit_xs mvitv2_tiny nest_tiny_jx
nf_resnet50 pit_ti_224 poolformer_s12 pvt_v2_b0 regnety_004 repvgg_a0 res2net50_26w_4s resnest14d rexnet_100
swinv2_tiny_window8_256 tinynet_a twins_pcpvt_small xcit_nano_12_p16_224
""".split()
TORCHVISION = """
alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 maxvit_t mnasnet0_5
mobilenet_v2 mobilenet_v3_large mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnet50 resnext50_32x4d
shufflenet_v2_x0_5 squeezenet1_0 squeezenet1_1 swin_t swin_v2_t vgg11 vgg11_bn vit_b_16 vit_b_32 wide_resnet50_2
segmentation.deeplabv3_mobilenet_v3_large segmentation.deeplabv3_resnet50 segmentation.fcn_resnet50
segmentation.lraspp_mobilenet_v3_large backbone.fasterrcnn_resnet50_fpn backbone.fasterrcnn_mobilenet_v3_large_fpn
backbone.retinanet_resnet50_fpn backbone.retinanet_resnet50_fpn_v2 backbone.ssd300_vgg16
backbone.ssdlite320_mobilenet_v3_large backbone.fcos_resnet50_fpn backbone.maskrcnn_resnet50_fpn
backbone.keypointrcnn_resnet50_fpn
""".split()

# The models that cgc refuses, and a part of the message.
REFUSED = {
    "timm/bat_resnext26ts": "cgc cannot compile aten::adaptive_max_pool2d",
    "timm/coat_tiny": "a module is used as a value",
}
LEAST = 95  # Of timm's and torchvision's models, at least as many have to agree.

# Published sizes of the text towers, which transformers would otherwise download.
ROBERTA = {"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
NLLB = {"vocab_size": 256206, "d_model": 1024, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096, "scale_embedding": True}
MT5 = {"vocab_size": 250112, "d_kv": 64, "feed_forward_proj": "gated-gelu"}
TEXT_TOWERS = {
    "roberta-base": ("RobertaConfig", {**ROBERTA, "vocab_size": 50265}),
    "xlm-roberta-base": ("XLMRobertaConfig", {**ROBERTA, "vocab_size": 250002}),
    "xlm-roberta-large": ("XLMRobertaConfig", {**ROBERTA, "vocab_size": 250002, "hidden_size": 1024, "num_hidden_layers": 24,
                                               "num_attention_heads": 16, "intermediate_size": 4096}),
    "google/mt5-base": ("MT5Config", {**MT5, "d_model": 768, "d_ff": 2048, "num_layers": 12, "num_heads": 12}),
    "google/mt5-xl": ("MT5Config", {**MT5, "d_model": 2048, "d_ff": 5120, "num_layers": 2, "num_heads": 32}),
    "facebook/nllb-200-distilled-600M": ("M2M100Config", {**NLLB, "encoder_layers": 12, "decoder_layers": 1}),
    "facebook/nllb-200-distilled-1.3B": ("M2M100Config", {**NLLB, "encoder_layers": 24, "decoder_layers": 1,
                                                          "encoder_ffn_dim": 8192}),
}
LARGE = 7e8  # A tower of more parameters, without its embeddings, has two layers here, so that a model fits in 16 GB.


def openclip_groups():
    """The smallest model of each distinct configuration group of open_clip: configurations that differ in numbers only."""
    import open_clip
    groups = {}
    for path in sorted((Path(open_clip.__file__).parent / "model_configs").glob("*.json")):
        config = json.loads(path.read_text())

        def shape(value, key=""):
            if isinstance(value, dict):
                return {k: shape(v, k) for k, v in sorted(value.items())}
            if isinstance(value, list):
                return "list"
            if key in ("timm_model_name", "hf_model_name", "hf_tokenizer_name"):
                return re.split(r"[/_\d-]", value.split("/")[-1])[0]
            return value if isinstance(value, (bool, str)) else "number"

        size = sum(v for k in ("vision_cfg", "text_cfg") for v in [config[k].get("width", 0) * 10] if isinstance(v, int))
        groups.setdefault(json.dumps(shape(config)), []).append((size + config["embed_dim"], path.stem))
    return sorted(min(members)[1] for members in groups.values())


def all_names():
    return [f"timm/{n}" for n in TIMM] + [f"torchvision/{n}" for n in TORCHVISION] + [f"open_clip/{n}" for n in openclip_groups()]


def build(name):
    """The model and its example inputs."""
    import torch
    kind, arch = name.split("/", 1)
    torch.manual_seed(0)
    if kind == "timm":
        import timm
        model = timm.create_model(arch, pretrained=False).eval()
        size = timm.data.resolve_model_data_config(model)["input_size"]
        return model, (torch.randn(1, *size),)
    if kind == "torchvision":
        import torchvision
        group, _, arch = arch.rpartition(".")
        if group == "backbone":
            model = getattr(torchvision.models.detection, arch)(weights=None, weights_backbone=None).backbone.eval()
            return model, (torch.randn(1, 3, 320, 320),)
        models = torchvision.models.segmentation if group else torchvision.models
        options = {"weights_backbone": None} if group else {"init_weights": True} if arch in ("googlenet", "inception_v3") else {}
        size = 299 if arch == "inception_v3" else 224
        return getattr(models, arch)(weights=None, **options).eval(), (torch.randn(1, 3, size, size),)
    return build_openclip(arch)


def build_openclip(arch):
    import open_clip
    import torch
    import transformers
    transformers.AutoConfig.from_pretrained = lambda name: getattr(transformers, TEXT_TOWERS[name][0])(**TEXT_TOWERS[name][1])
    config = open_clip.get_model_config(arch)
    shallow = {}
    for key in ("vision_cfg", "text_cfg", "multimodal_cfg"):
        tower = config.get(key, {})
        if "width" in tower and isinstance(tower.get("layers"), int) and 12 * tower["layers"] * tower["width"] ** 2 > LARGE:
            shallow[key] = {**tower, "layers": 2}
    model = open_clip.create_model(arch, pretrained=None, pretrained_hf=False, **shallow).eval()
    size = model.visual.image_size
    height, width = size if isinstance(size, (tuple, list)) else (size, size)
    text = config["text_cfg"]
    length = text.get("context_length", 77)
    vocabulary = TEXT_TOWERS[text["hf_model_name"]][1]["vocab_size"] if "hf_model_name" in text else text.get("vocab_size", 49408)
    tokens = torch.randint(2, vocabulary - 1, (1, length))
    tokens[0, -1] = vocabulary - 1  # The end of the text, in which a tower may pool, is its largest token.
    return model, (torch.randn(1, 3, height, width), tokens)


def run_one(name, cgc):
    """Builds, traces, compiles and compares a model; returns its result."""
    warnings.simplefilter("ignore")
    import torch
    with tempfile.TemporaryDirectory() as folder:
        file, plan = Path(folder) / "model.pt", Path(folder) / "model.cgplan"
        try:
            model, example = build(name)
            parameters = sum(p.numel() for p in model.parameters())
            with torch.no_grad():
                torch.jit.trace(model, example, strict=False, check_trace=False).save(str(file))
            del model
        except Exception as error:
            return {"status": "no trace", "message": str(error).strip().split("\n")[0]}
        library = name.split("/")[0]
        result = {"parameters": parameters, "library": f"{library} {sys.modules[library].__version__}"}
        inputs = [f"--input={torch.jit.load(str(file)).forward.schema.arguments[i + 1].name}="
                  f"{'f32' if x.is_floating_point() else 'i64'}{list(x.shape)}".replace(" ", "") for i, x in enumerate(example)]
        compiled = subprocess.run([cgc, "compile", file, "-o", plan, "--target", "cpu", "--entry", "forward", "--json", *inputs],
                                  capture_output=True, text=True, timeout=SECONDS)
        if compiled.returncode != 0:
            errors = [line for line in compiled.stderr.splitlines() if "error: " in line]
            located = [line for line in errors if not line.startswith("cgc:")]  # FILE:LINE: error: the op and the cause.
            return {**result, "status": "refused" if compiled.returncode == 4 and located else "failed",
                    "message": (located or errors or [compiled.stderr[-300:]])[0].strip()}
        compared = subprocess.run([cgc, "compare", plan, file, "--json"], capture_output=True, text=True, timeout=SECONDS)
        try:
            outputs = json.loads(compared.stdout)["outputs"]
        except (ValueError, KeyError):
            return {**result, "status": "failed", "message": compared.stderr.strip().split("\n")[0]}
        error = max(output["relative_l2"] for output in outputs)
        return {**result, "status": "agrees" if compared.returncode == 0 and error <= 1e-5 else "differs", "relative_l2": error}


def commit_of(cgc):
    """The commit that `cgc --version` names: "cgc 0.1.0 (ef34655), ..."."""
    text = subprocess.run([cgc, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"\((.+?)\)", text)[1]


def made_with(results):
    """The libraries of the results and the commits of cgc, for the page. Older results have no commit."""
    libraries = {r["library"] for r in results.values() if "library" in r}
    return sorted(libraries) + sorted({f"cgc {r['commit']}" for r in results.values() if "commit" in r})


def problem(name, result):
    """Why the result of a model is not the expected one; None if it is."""
    status = result["status"]
    if name not in REFUSED:
        return None if status == "agrees" else f"{status}, and has to agree"
    if status == "agrees":
        return "agrees now: remove it from REFUSED"
    if status != "refused" or REFUSED[name] not in result["message"]:
        return f"{status}, and has to be refused with '{REFUSED[name]}'"
    return None


def shortfalls(results):
    """The bounds on the number of models that agree, of all models, if they are missed: REFUSED may not hide more."""
    missed = []
    agree = {name for name, result in results.items() if result["status"] == "agrees"}
    others = [name for name in results if not name.startswith("open_clip/")]
    if len(agree.intersection(others)) < LEAST:
        missed.append(f"{len(agree.intersection(others))} of {len(others)} models of timm and torchvision agree, fewer than {LEAST}")
    if left := [name for name in results if name.startswith("open_clip/") and name not in agree]:
        missed.append("of open_clip, do not agree: " + ", ".join(left))
    return missed


def write_page(results):
    """Replaces the page's last section, which scripts/supported_models.py keeps."""
    lines = [HEADING, "",
             "One architecture for each family of timm and torchvision, and each configuration group of open_clip, with random weights,",
             "traced and compiled for cpu. The figure is the largest relative L2 to LibTorch over the outputs. `scripts/model_zoo.py` writes this section.",
             f"Towers of open_clip with more than {LARGE / 1e6:.0f} M parameters have two layers instead of all.", "",
             f"Of {len(results)} models, {sum(r['status'] == 'agrees' for r in results.values())} agree. Made with "
             + ", ".join(made_with(results)) + ".", "",
             "| model | parameters | result |", "|---|---|---|"]
    for name, result in sorted(results.items()):
        text = (f"{result['relative_l2']:.0e}" if result["relative_l2"] else "equal") if result["status"] == "agrees" else \
            f"{result['status']}: {result.get('message', result.get('relative_l2'))}".replace("|", "\\|").replace(str(ROOT) + "/", "")
        lines.append(f"| `{name}` | {result.get('parameters', 0) / 1e6:.1f} M | {text} |")
    page = PAGE.read_text().split("\n" + HEADING)[0].rstrip("\n")
    PAGE.write_text(page + "\n\n" + "\n".join(lines) + "\n")


def parse_arguments(description, example):
    """The arguments of a zoo's command line. Exits if cgc is not there."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", default="*", metavar="PATTERN", help=f"models whose name matches, such as '{example}'")
    parser.add_argument("--jobs", type=int, default=1, help="models at a time")
    parser.add_argument("--cgc", default=ROOT / "build/release/bin/cgc", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not args.cgc.exists():
        sys.exit(f"{Path(sys.argv[0]).stem}: {args.cgc} does not exist; build cgc, or name it with --cgc")
    return args


def run_chosen(names, args, folder):
    """The results of the models that `--only` chooses by name. Each runs as this script with `--one`, unless `folder` has its result."""
    script = Path(sys.argv[0])
    chosen = [name for name in names if fnmatch.fnmatch(name, args.only)]
    if not chosen:
        sys.exit(f"{script.stem}: no model matches '{args.only}'")
    commit = commit_of(args.cgc)
    folder.mkdir(parents=True, exist_ok=True)

    def run(name):
        path = path_of(folder, name)
        if not path.exists():
            done = subprocess.run([sys.executable, script, "--one", name, "--cgc", args.cgc], capture_output=True, text=True,
                                  env={**os.environ, "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // args.jobs))})
            last = done.stdout.strip().splitlines()[-1:] or ["{}"]
            result = json.loads(last[0]) if done.returncode == 0 else \
                {"status": "failed", "message": (done.stderr.strip().splitlines() or ["killed"])[-1]}
            path.write_text(json.dumps({**result, "commit": commit}) + "\n")
        result = json.loads(path.read_text())
        print(f"{name:50} {result['status']} {result.get('relative_l2', '')} {result.get('message', '')}", flush=True)
        return result

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        return dict(zip(chosen, pool.map(run, chosen)))


def path_of(folder, name):
    return folder / (name.replace("/", ".") + ".json")


def main():
    args = parse_arguments(__doc__.splitlines()[0], "timm/res*")
    if args.one:
        print(json.dumps(run_one(args.one, args.cgc)))
        return
    names = all_names()
    folder = ROOT / "build/release/zoo"
    results = run_chosen(names, args, folder)
    write_page({name: json.loads(path_of(folder, name).read_text()) for name in names if path_of(folder, name).exists()})
    problems = [f"{name} {why}" for name, result in results.items() if (why := problem(name, result))]
    if list(results) == names:
        problems += shortfalls(results)
    for text in problems:
        print(f"model_zoo: {text}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
