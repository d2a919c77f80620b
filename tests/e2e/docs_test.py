"""Runs the code blocks of the pages as a reader would: docs_test.py --prefix PREFIX --folder FOLDER

Each block of PAGES runs, or is compiled, in FOLDER, which looks like the repository. A block that is not known here fails the test. PREFIX is an
installed cgc.
"""
import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/python.md", "docs/training.md", "docs/serving.md", "docs/deployment.md"]
PRELUDE = """#include "runtime/session/session.h"
#include "runtime/train/trainer.h"
#include <cstdio>
#include <functional>
#include <memory>
struct Batch { std::vector<cgc::TensorView> views; };
struct Adapter { cgc::Status enqueue(cgc::TensorView, cgc::TensorView, void *); };
cgc::Status block(std::vector<Batch> batches, double rate, cgc::TensorView images, cgc::TensorView features, Adapter adapter) {
"""


def shell(block):
    subprocess.run(["bash", "-euo", "pipefail", "-c", block], check=True, stdin=subprocess.DEVNULL,
                   env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "OMP_NUM_THREADS": "1"})


def cpp(block):
    """Compiles statements, which may begin with includes, in a function."""
    body = re.sub(r"^#include.*$", "", block, flags=re.MULTILINE)
    Path("block.cpp").write_text(f"{PRELUDE}{body}\nreturn cgc::Status::ok(); }}\n")
    subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-Wno-unused", f"-I{arguments.prefix}/include/cgc", "block.cpp"], check=True)


def python(block):
    """Compiles the block: tests/python runs what its names stand for."""
    compile(block, "block", "exec")


def as_in(path):
    """The block is a part of a file that other tests build or run."""
    def check(block):
        wanted, text = (re.sub(r"\s+", " ", part).strip() for part in (block, (ROOT / path).read_text()))
        assert wanted in text, f"{path} has no such lines"
    return check


def left_out(reason):
    return lambda block: print("  left out:", reason)


def installed(block):
    """`cmake --install` of the whole build takes minutes; PREFIX is what it installs."""
    shutil.rmtree("installed", ignore_errors=True)
    os.symlink(arguments.prefix, "installed")
    lines = block.splitlines()
    assert lines[0] == 'cmake --install build/release --prefix "$PWD/installed"', lines[0]
    shell("\n".join(lines[1:]))


# By the beginning of the block.
BLOCKS = {
    " model.pt ": left_out("a drawing"),
    "scripts/demo.sh ": left_out("continuous integration calls scripts/test.sh; scripts/demo.sh builds everything"),
    ".venv/bin/python scripts/export_openclip.py": left_out("needs a checkpoint of OpenCLIP; Exporter.* and RealModel.* run these commands"),
    "import cgc\n": left_out("test_the_example_of_the_readme runs it, with a small model"),
    "cgc::Status run(": as_in("examples/run_plan/main.cpp"),
    "find_package(cgc REQUIRED COMPONENTS runtime)\nadd_executable": as_in("examples/run_plan/CMakeLists.txt"),
    "cmake --install build/release --prefix \"$PWD/installed\"\nCMAKE_PREFIX_PATH": left_out("Python.WheelServesPlans builds and installs the wheel"),
    "session = cgc.load(": python,
    ".venv/bin/python examples/training/mlp.py": shell,
    "class Step(torch.nn.Module):": lambda block: shell(f"cat > block.py <<'EOF'\nimport torch\nx = y = torch.rand(4, 1024)\n{block}EOF\n"
                                                       ".venv/bin/python block.py\n"),
    "#include \"runtime/train/trainer.h\"": cpp,
    "CGC_ASSIGN_OR_RETURN(cgc::Session session": cpp,
    "cgc::SessionOptions options;": cpp,
    "find_package(cgc REQUIRED COMPONENTS runtime)\ntarget_link_libraries(my_server": left_out("Examples.BuildAgainstAnInstalledCgc has these lines with other names"),
    "cmake --install build/release --prefix \"$PWD/installed\"\nexport PKG_CONFIG_PATH": installed,
}

parser = argparse.ArgumentParser()
parser.add_argument("--prefix", required=True)
parser.add_argument("--folder", required=True)
arguments = parser.parse_args()
shutil.rmtree(arguments.folder, ignore_errors=True)
Path(arguments.folder).mkdir(parents=True)
os.chdir(arguments.folder)
for name in (".venv", "build", "examples", "scripts", "python", "tests"):
    os.symlink(ROOT / name, name)
used = set()
for page in PAGES:
    text = (ROOT / page).read_text()
    assert text.count("\n```") % 2 == 0, f"{page}: a block is not closed"
    for number, block in enumerate(re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE), 1):
        begins = [begin for begin in BLOCKS if block.startswith(begin)]
        assert len(begins) == 1, f"{page}: tests/e2e/docs_test.py does not say how block {number} runs:\n{block}"
        print(f"{page}, block {number}: {begins[0].splitlines()[0]}", flush=True)
        used.add(begins[0])
        BLOCKS[begins[0]](block)
assert used == set(BLOCKS), f"no page has {set(BLOCKS) - used}"
