"""Runs the code blocks of the pages as a reader would: docs_test.py --prefix PREFIX --folder FOLDER

Each block of PAGES runs in FOLDER, which looks like the repository, in a shell without other variables than PATH and HOME. Blocks of C++
and CMake are built against PREFIX, an installed cgc, linked and run. NEAREST has the parts of blocks that run in another form. A block
that is not in BLOCKS fails the test. The cells of examples/notebook/clip.ipynb run after them.
"""
import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/python.md", "docs/embeddings.md", "docs/training.md", "docs/serving.md", "docs/deployment.md"]
# What a block has, what runs in place of it, and why.
NEAREST = [
    ('cmake --install build/release --prefix "$PWD/installed"\n', "", "takes minutes; the folder `installed` is PREFIX, which has the same files"),
    ("scripts/demo.sh ", "bash -euo pipefail -c \"$(sed 's/^setup$//; s/^build cgc$//' scripts/demo.sh)\" scripts/demo.sh ", "builds everything"),
    ("scripts/test.sh ", "bash -n scripts/test.sh ", "runs this test"),
    ("--input text=@text.npy --output", "--input text=@text.npy --executor reference --output", "needs a GPU"),
    ("compare model.cgplan model.pt", "compare model.cgplan model.pt --executor reference", "needs a GPU"),
    ('cgc.load("clip.cgplan")', 'cgc.load("clip.cgplan", executor="reference")', "needs a GPU"),
    ('cgc.load("clip.cgplan", device=0,', 'cgc.load("clip.cgplan", executor="reference",', "needs a GPU"),
    ('cgc.load("vit-b-32/")', 'cgc.load("vit-b-32/", executor="reference")', "needs a GPU"),
    ('pip install "$(ls build/dist/cgc-*-manylinux*.whl)[openclip,search]"\n', "", "wheel() has installed it"),
    ("--precision fp16 --batch 1,8,64", "--precision fp16 --batch 1,8 --force", "is exported twice"),
    ("cgc search pictures/", "search_once pictures/ --executor reference --no-browser --port 0", "ends when the page is served"),
    ("cgc embed ", "cgc embed --executor reference ", "needs a GPU"),
    ("cgc train mlp2.cgplan", "cgc train --executor reference --nccl build/release/lib/test_nccl mlp2.cgplan", "needs two GPUs"),
    ('torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))\ndist.init_process_group("nccl")', 'dist.init_process_group("gloo")', "needs two GPUs"),
    ("process_group=dist.group.WORLD)", 'process_group=dist.group.WORLD, target="cuda", executor="reference", nccl_path="build/release/lib/test_nccl")',
     "needs two GPUs"),
    ('pretrained="laion2b_s34b_b79k"', 'pretrained="weights.safetensors"', "needs a network"),
]
SMALL_MODEL = """{
  "embed_dim": 32,
  "vision_cfg": {"image_size": 224, "patch_size": 32, "layers": 1, "width": 64, "head_width": 32},
  "text_cfg": {"context_length": 77, "vocab_size": 49408, "layers": 1, "width": 64, "heads": 2}
}"""
# The files around the blocks of C++ that are parts of a function. A block's includes come first.
SERVE = """#include "runtime/session/session.h"
cgc::Status serve(cgc::TensorView images, cgc::TensorView features) {
BLOCK
  return cgc::Status::ok();
}
"""
TRAIN = """#include <cstdio>
#include <vector>
struct Batch {
  std::vector<cgc::TensorView> views;
};
cgc::Status train(const std::vector<Batch> &batches, double rate) {
BLOCK
}
"""
CALL_HOST = """#include "runtime/session/session.h"
#include <algorithm>
struct Adapter {
  int calls = 0;
  cgc::Status enqueue(const cgc::TensorView &from, const cgc::TensorView &to, void *) {
    ++calls;
    std::copy_n(static_cast<const float *>(from.data), 4, static_cast<float *>(to.data));
    return cgc::Status::ok();
  }
};
cgc::Status callHost(const cgc::TensorView &x, const cgc::TensorView &y, int &calls) {
  Adapter adapter;
BLOCK
  CGC_ASSIGN_OR_RETURN(cgc::Session session, cgc::Session::load("adapter.cgplan", options));
  CGC_TRY(session.run("forward", {&x, 1}, {&y, 1}));
  calls = adapter.calls;
  return cgc::Status::ok();
}
"""
SERVER = """#include "runtime/session/session.h"
#include <cstdio>
#include <vector>
struct Batch {
  std::vector<cgc::TensorView> views;
};
cgc::Status serve(cgc::TensorView images, cgc::TensorView features);
cgc::Status train(const std::vector<Batch> &batches, double rate);
cgc::Status callHost(const cgc::TensorView &x, const cgc::TensorView &y, int &calls);

struct Floats {
  std::vector<int64_t> sizes;
  std::vector<float> values;
  Floats(std::vector<int64_t> ofSizes, float value) : sizes(std::move(ofSizes)) {
    size_t count = 1;
    for (const int64_t size : sizes)
      count *= size_t(size);
    values.assign(count, value);
  }
  cgc::TensorView view() { return {values.data(), cgc::DType::F32, cgc::DeviceKind::Cpu, sizes, {}}; }
};

int check(const char *what, const cgc::Status &status, bool isRight) {
  std::printf("%s: %s\\n", what, status.isOk() ? isRight ? "right" : "wrong" : status.message().c_str());
  return !status.isOk() || !isRight;
}

int main() {
  Floats images({1, 3, 224, 224}, 1), features({1, 32}, 0), x({1, 4}, 3), y({1, 4}, 0), in({4, 1024}, 1), target({4, 1024}, 0);
  int failures = 0, calls = 0;
  const cgc::Status served = serve(images.view(), features.view());
  failures += check("serve", served, features.values[0] != 0);
  const cgc::Status called = callHost(x.view(), y.view(), calls);
  failures += check("host", called, calls == 1 && y.values[0] == 6); // The model doubles what the adapter returns.
  failures += check("train", train({{{in.view(), target.view()}}, {{in.view(), target.view()}}}, 0.01), true);
  return failures;
}
"""
ADAPTED = """
import torch
class Visual(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.adapter = torch.nn.Identity()
    def forward(self, x):
        return self.adapter(x) * 2
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.visual = Visual()
    def forward(self, x):
        return self.visual(x)
torch.jit.script(Model()).save("adapter.pt")
"""


def shell(block, **variables):
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "OMP_NUM_THREADS": "1", "CGC_CACHE": "off"} | variables
    subprocess.run(["bash", "-euo", "pipefail", "-c", block], check=True, stdin=subprocess.DEVNULL, env=environment)


def with_small_model(block):
    """The block with an open_clip whose ViT-B-32 is small."""
    shell(block, PYTHONPATH=f"{os.getcwd()}/stand_ins")


def wheel(block):
    """`pip` is that of a new environment, which sees the packages of .venv and no network."""
    shell(f"""
        .venv/bin/python -m venv environment
        echo {shlex.quote(str(ROOT))}/.venv/lib/python3*/site-packages >"$(echo environment/lib/python3*/site-packages)/packages.pth"
    """)
    shell(block, PATH=f"{os.getcwd()}/environment/bin:{os.environ['PATH']}", PIP_NO_INDEX="1", PIP_NO_BUILD_ISOLATION="0")


def python(block):
    """Runs the block with the package of wheel()."""
    Path("block.py").write_text(block)
    shell("environment/bin/python block.py", PYTHONPATH=f"{os.getcwd()}/stand_ins",
          PATH=f"{os.getcwd()}/installed/bin:{os.environ['PATH']}", CGC_LIBTORCH=LIBTORCH)


def embeddings(block):
    """The block with the program of wheel() and a folder of pictures."""
    shell("""
search_once() {
  cgc search "$@" >search.log &
  until grep -q http: search.log; do kill -0 $! && sleep 0.1; done
  kill $! && { wait $! || true; }
}
mkdir -p pictures && cp cat.jpg pictures && cp cat.jpg dog.jpg
""" + block, PYTHONPATH=f"{os.getcwd()}/stand_ins", XDG_CACHE_HOME=f"{os.getcwd()}/cache",
          PATH=f"{os.getcwd()}/environment/bin:{os.environ['PATH']}")


def session(block):
    """The block after the example of the README, whose names it uses, with a plan that has the entry `forward`, too."""
    (number,) = re.findall(r"\S+\.inputs  # (.*)$", block, re.MULTILINE)
    example = block_that_begins("import cgc\nimport open_clip").split("\nsession = ")[0].replace('["encode_image", "encode_text"]', '["encode_image", "forward"]')
    assert '"forward"' in example
    python(f"{nearest(example)}\ntexts = texts[:1]\n{block}\nTensorInfo = cgc.TensorInfo\n"
           f"assert session.entries['encode_image'].inputs == {number}\n")


def module(block):
    python(f"import cgc\nimport torch\nmodel = torch.nn.Linear(4, 2)\nimages = torch.randn(2, 4)\n{block}")


def preprocessing(block):
    python("import cgc\nimport numpy\narray = numpy.zeros((40, 50, 3), numpy.uint8)\nfile_in_memory = open('cat.jpg', 'rb').read()\n"
           "class session:\n    run = staticmethod(lambda entry, pixels: pixels)\n"
           f"{block}\nassert images.errors == [None] * 3 and features.shape == (3, 3, 224, 224) and features.dtype == numpy.float16\n")


def live(block):
    python("import cgc\nimport open_clip\nimport torch\nclip_model = open_clip.create_model('ViT-B-32').eval()\n"
           f"images = torch.randn(2, 3, 224, 224)\n{block}assert features.shape == (2, 32)\n")


TRAINING = "import cgc\nimport torch\nfeatures, labels = torch.randn(4, 512), torch.arange(4)\nloader = [(features, labels)] * 3\n"


def training(block):
    python(f"{TRAINING}{block}assert step.step_number == 3\n")


def ranks(block):
    """Runs the block on two ranks, after the module of the block before it."""
    module = block_that_begins("class Classifier(torch.nn.Module):").split("\nmodel = ")[0]
    Path("train.py").write_text(f"{TRAINING}{module}\n{block}assert step.step_number == 3\n")
    shell("environment/bin/python -m torch.distributed.run --standalone --nproc-per-node 2 train.py", CGC_LIBTORCH=LIBTORCH)


def step(block):
    shell(f"cat > block.py <<'EOF'\nimport torch\nx = y = torch.rand(4, 1024)\n{block}EOF\n.venv/bin/python block.py\n")


def cpp(file, around):
    """Writes the block with what is around it as a source of my_server(), which builds and runs it."""
    def write(block):
        lines = block.splitlines()
        includes = [line for line in lines if line.startswith("#include")]
        body = "\n".join(line for line in lines if line not in includes)
        Path("server").mkdir(exist_ok=True)
        Path("server", file).write_text("\n".join(includes) + "\n" + around.replace("BLOCK", body))
    return write


def build(folder, name, cmake, sources):
    """Builds `cmake` against PREFIX in a project of its own."""
    Path(folder, "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.24)\nproject({name} LANGUAGES CXX)\n{cmake}")
    assert all(Path(folder, source).is_file() for source in sources), sources
    shell(f"cmake -S {folder} -B {folder}/build -G Ninja -DCMAKE_PREFIX_PATH=\"$PWD/installed\" && cmake --build {folder}/build")


def run_plan(block):
    """Builds the example whose lines the README shows, and runs it."""
    lines = block_that_begins("cgc::Status run(")
    source = (ROOT / "examples/run_plan/main.cpp").read_text()
    assert lines in source, "examples/run_plan/main.cpp does not have the lines of the README"
    Path("run_plan").mkdir()
    Path("run_plan/main.cpp").write_text(source)
    build("run_plan", "run_plan", block, ["main.cpp"])
    shell("build/release/bin/cgc compile demo/model.pt -o run_plan/clip.cgplan --target cpu --entry encode_image --input 'image=f32[1,3,224,224]'\n"
          "run_plan/build/run_plan run_plan/clip.cgplan encode_image", CGC_LIBTORCH=LIBTORCH)


def my_server(block):
    """Builds and runs the server with all sources of cpp()."""
    Path("server/main.cpp").write_text(SERVER)
    sources = ["main.cpp", "serve.cpp", "train.cpp", "call_host.cpp"]
    build("server", "my_server", block.replace("\n", f"\nadd_executable(my_server {' '.join(sources)})\n", 1), sources)
    Path("adapted.py").write_text(ADAPTED)
    shell("""
        cgc=build/release/bin/cgc
        .venv/bin/python adapted.py
        $cgc compile demo/model.pt -o server/clip.cgplan --target cpu --entry encode_image --input 'image=f32[1,3,224,224]'
        $cgc compile adapter.pt -o server/adapter.cgplan --target cpu --host-module visual.adapter --input 'x=f32[1,4]'
        $cgc compile step.pt -o server/step.cgplan --target cpu --train forward --input 'x=f32[4,1024]' --input 'y=f32[4,1024]' --optimizer sgd,lr=0.1
        cd server
        build/my_server
        test -e run
    """, CGC_LIBTORCH=LIBTORCH)


def serve_c(block):
    shell(block)
    shell("""
        build/release/bin/cgc compile demo/model.pt -o serve_c.cgplan --target cpu --entry encode_image --input 'image=f32[1,3,224,224]' --batch 1,8
        ./serve_c serve_c.cgplan encode_image 2 1
    """, CGC_LIBTORCH=LIBTORCH)


# By the beginning of the block, in the order in which they run.
BLOCKS = {
    " model.pt2 ": lambda block: None,  # A drawing.
    "cmake --install build/release --prefix \"$PWD/installed\"\nCMAKE_PREFIX_PATH": wheel,
    "scripts/demo.sh ": with_small_model,
    ".venv/bin/python scripts/export_openclip.py": with_small_model,
    "import cgc\nimport open_clip": python,
    'pip install "$(ls build/dist/cgc': embeddings,
    "import cgc\n\nmodel = cgc.load(": python,
    "cgc export vit-b-32/": embeddings,
    "import cgc.ray\n": lambda block: compile(block, "block", "exec"),  # tests/python/test_ray.py runs it, with Ray.
    "model = cgc.load(": lambda block: python(f"import cgc\n{block}"),
    "session = cgc.load(": session,
    "preprocess = cgc.Preprocess(": preprocessing,
    "fast = cgc.compile(": module,
    "fast = torch.compile(": module,
    "with cgc.openclip.accelerate(": live,
    "cgc::Status run(": lambda block: None,  # run_plan builds and runs it.
    "find_package(cgc REQUIRED COMPONENTS runtime)\nadd_executable": run_plan,
    ".venv/bin/python examples/training/mlp.py": shell,
    "build/release/bin/cgc compile mlp.pt -o mlp2.cgplan": shell,
    "class Step(torch.nn.Module):": step,
    "class Classifier(torch.nn.Module):": training,
    "import os\nimport torch.distributed as dist": ranks,
    "#include \"runtime/train/trainer.h\"": cpp("train.cpp", TRAIN),
    "CGC_ASSIGN_OR_RETURN(cgc::Session session": cpp("serve.cpp", SERVE),
    "cgc::SessionOptions options;": cpp("call_host.cpp", CALL_HOST),
    "find_package(cgc REQUIRED COMPONENTS runtime)\ntarget_link_libraries(my_server": my_server,
    "cmake --install build/release --prefix \"$PWD/installed\"\nexport PKG_CONFIG_PATH": serve_c,
}


def block_that_begins(begin):
    return next(block for _, block, own in blocks if own == begin)


def nearest(block):
    for part, instead, _ in NEAREST:
        block = block.replace(part, instead)
    return block


def make_stand_ins():
    """A copy of open_clip, by links, whose ViT-B-32 is small, with weights for it and a picture."""
    package = next((ROOT / ".venv/lib").glob("python3*")) / "site-packages/open_clip"
    copy = Path("stand_ins/open_clip")
    (copy / "model_configs").mkdir(parents=True)
    for folder in ("", "model_configs"):
        for file in (package / folder).iterdir():
            if file.name not in ("model_configs", "__pycache__", "ViT-B-32.json"):
                os.symlink(file, copy / folder / file.name)
    (copy / "model_configs/ViT-B-32.json").write_text(SMALL_MODEL)
    with_small_model("""
        .venv/bin/python -c "
import open_clip, safetensors.torch, torch
torch.manual_seed(0)
from PIL import Image
safetensors.torch.save_model(open_clip.create_model('ViT-B-32'), 'weights.safetensors')
Image.effect_mandelbrot((50, 40), (-2, -1.5, 1, 1.5), 100).save('cat.jpg')
"
    """)


parser = argparse.ArgumentParser()
parser.add_argument("--prefix", required=True)
parser.add_argument("--folder", required=True)
arguments = parser.parse_args()
shutil.rmtree(arguments.folder, ignore_errors=True)
Path(arguments.folder).mkdir(parents=True)
os.chdir(arguments.folder)
for name in (".venv", "build", "examples", "scripts", "python", "tests"):
    os.symlink(ROOT / name, name)
os.symlink(arguments.prefix, "installed")
LIBTORCH = str(next((ROOT / ".venv/lib").glob("python3*")) / "site-packages/torch")

blocks = []  # The place, the text, and the key in BLOCKS.
for page in PAGES:
    text = (ROOT / page).read_text()
    assert text.count("\n```") % 2 == 0, f"{page}: a block is not closed"
    for number, block in enumerate(re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE), 1):
        begins = [begin for begin in BLOCKS if block.startswith(begin)]
        assert len(begins) == 1, f"{page}: tests/e2e/docs_test.py does not say how block {number} runs:\n{block}"
        blocks.append((f"{page}, block {number}", block, begins[0]))
unused = [begin for begin in BLOCKS if begin not in {own for _, _, own in blocks}]
assert not unused, f"no page has {unused}"
for part, _, _ in NEAREST:
    assert any(part in block for _, block, _ in blocks), f"no block has {part!r}"

make_stand_ins()
order = list(BLOCKS)
for place, block, begin in sorted(blocks, key=lambda entry: order.index(entry[2])):
    print(f"{place}: {begin.splitlines()[0]}", flush=True)
    for part, _, reason in NEAREST:
        if part in block:
            print(f"  in its nearest form, {part.strip()!r}: {reason}", flush=True)
    BLOCKS[begin](nearest(block))

print("== examples/notebook/clip.ipynb", flush=True)
cells = json.loads((ROOT / "examples/notebook/clip.ipynb").read_text())["cells"]
python("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))
