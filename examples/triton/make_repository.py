"""Makes a model repository of Triton from a model folder of `cgc export`: make_repository.py MODEL_FOLDER REPOSITORY [--executor reference]

The model `embed_image` takes the bytes of pictures, `picture`, and returns their vectors, `vector`, which are not normalized. It is
an ensemble of `preprocess`, which needs Triton's Python backend and the package cgc, and of `encode_image`, which cgc's backend runs.
`--executor reference` is for a server without a GPU: it is slow.
"""
import argparse
import json
import shutil
import sys
from pathlib import Path

import cgc

TYPES = {"float32": "TYPE_FP32", "float16": "TYPE_FP16"}

ENCODE = """backend: "cgc"
parameters {{ key: "entry" value {{ string_value: "encode_image" }} }}
parameters {{ key: "executor" value {{ string_value: "{executor}" }} }}
"""
PREPROCESS = """backend: "python"
max_batch_size: {batch}
input {{ name: "picture" data_type: TYPE_STRING dims: [ 1 ] }}
output {{ name: "{image.name}" data_type: {image_type} dims: {image_dims} }}
dynamic_batching {{ }}
instance_group {{ kind: KIND_CPU }}
"""
ENSEMBLE = """platform: "ensemble"
max_batch_size: {batch}
input {{ name: "picture" data_type: TYPE_STRING dims: [ 1 ] }}
output {{ name: "vector" data_type: {vector_type} dims: {vector_dims} }}
ensemble_scheduling {{
  step {{ model_name: "preprocess" model_version: -1
          input_map {{ key: "picture" value: "picture" }} output_map {{ key: "{image.name}" value: "image" }} }}
  step {{ model_name: "encode_image" model_version: -1
          input_map {{ key: "{image.name}" value: "image" }} output_map {{ key: "{vector.name}" value: "vector" }} }}
}}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--executor", choices=("graph", "reference"), default="graph")
    args = parser.parse_args()

    try:
        # The reference executor loads a plan for GPUs without one.
        is_for_gpu = json.loads((args.folder / "model.json").read_text())["target"] == "cuda"
        with cgc.load(args.folder, executor="reference" if is_for_gpu else "graph") as model:
            entry = model.session.entries.get("encode_image")
    except (cgc.Error, OSError, ValueError, LookupError, TypeError) as error:
        sys.exit(f"{args.folder} cannot be loaded as a model folder ({error}): give what cgc export wrote")
    if entry is None:
        sys.exit(f"{args.folder} has no encode_image: give the folder of a model of pictures")
    (image,), (vector,) = entry.inputs, entry.outputs
    if image.dtype not in TYPES:
        sys.exit(f"{args.folder} takes {image.dtype}, which no array of Triton's Python backend has: export it with --precision fp16 or fp32")
    values = {"executor": args.executor, "image": image, "image_type": TYPES[image.dtype], "image_dims": list(image.shape[1:]),
              "vector": vector, "vector_type": TYPES[vector.dtype], "vector_dims": list(vector.shape[1:]),
              "batch": max(bucket.batch for bucket in entry.buckets)}
    files = {"encode_image": {"model.cgplan": args.folder / "model.cgplan"},
             "preprocess": {"model.py": Path(__file__).with_name("preprocess.py"), "preprocess.json": args.folder / "preprocess.json"},
             "embed_image": {}}
    for name in files:
        if (args.repository / name).exists():
            sys.exit(f"{args.repository / name} exists: remove it, or give another repository")
    for name, config in (("encode_image", ENCODE), ("preprocess", PREPROCESS), ("embed_image", ENSEMBLE)):
        version = args.repository / name / "1"
        version.mkdir(parents=True)
        for file, source in files[name].items():
            shutil.copyfile(source, version / file)
        (args.repository / name / "config.pbtxt").write_text(config.format(**values))


main()
