"""Builds the wheel against an installed cgc and tests it without torch, with it, with Ray, and with Triton, without a network:

    check_wheel.py --folder FOLDER --part build|torch|triton --prefix PREFIX
    check_wheel.py --folder FOLDER --part alone|ray

The Python that runs this has torch and the packages of scripts/dependencies.txt.
"""
import argparse
import importlib.metadata
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from packaging.requirements import Requirement

HERE = Path(__file__).resolve().parent
#: What the virtual environment without torch holds besides the wheel, with all that these require: the dependencies of the
#: wheel, those of its extra `search`, and the tests'.
PACKAGES = ("numpy", "nanobind-backend", "ftfy", "regex", "tokenizers", "pillow", "pyarrow", "tqdm", "starlette", "uvicorn", "pytest")
#: The tests that need torch. All others run without.
WITH_TORCH = tuple(HERE / f"test_{name}.py" for name in ("cache", "dynamo", "export", "fallback", "gpu", "module", "openclip", "preprocess", "ranks", "resize", "torch",
                                                        "train"))
WITH_RAY = HERE / "test_ray.py"
WITH_TRITON = HERE / "test_triton.py"
MAX_BYTES = 27_000_000


def run(*command, **environment):
    print("$", *command, flush=True)
    subprocess.run(list(map(str, command)), check=True, env={**os.environ, **environment})


def build(prefix, folder):
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
        HERE.parents[1] / "python", "--wheel-dir", folder, CMAKE_PREFIX_PATH=str(prefix))
    (wheel,) = folder.glob("*.whl")
    return wheel


def check(wheel):
    """Checks what pip and the loader will find."""
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size} bytes")
    assert wheel.name.endswith("-cp310-abi3-linux_x86_64.whl"), wheel.name
    assert size < MAX_BYTES, size
    names = set(zipfile.ZipFile(wheel).namelist())
    libraries = {"cgc/_images.abi3.so", "cgc/_runtime.abi3.so", "cgc/libcgc_runtime.so.0",
                 *(f"cgc/libcgc_{name}.so" for name in ("aten", "frontend", "reference"))}
    assert {name for name in names if ".so" in name} == libraries, names
    assert {"cgc/cgc", "cgc/py.typed", "cgc/_images.pyi", "cgc/_runtime.pyi"} <= names, names


def required(packages):
    """These packages and those that they require."""
    found, new = set(), set(packages)
    while new:
        found |= new
        requirements = [Requirement(text) for package in new for text in importlib.metadata.requires(package) or []]
        new = {each.name.lower() for each in requirements if not each.marker or each.marker.evaluate({"extra": ""})} - found
    return found


def make_environment(folder, wheel):
    """A virtual environment with the wheel and copies of PACKAGES. Returns its Python."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    site = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"], check=True,
                          capture_output=True, text=True).stdout.strip()
    for package in required(PACKAGES):
        for file in importlib.metadata.files(package):
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = Path(site, file)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), target)
    run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel)
    run(python, "-m", "pip", "check", "--disable-pip-version-check")
    return python


def pytest(python, folder, *arguments, **environment):
    run(python, *(["-I"] if not environment else []), "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--plans", folder / "plans", *arguments, CGC_CACHE="off", **environment)


def build_all(prefix, folder):
    """The wheel, its installation for a Python with other packages, and the plans of the tests."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "plans").mkdir(parents=True)
    wheel = build(prefix, folder / "wheel")
    check(wheel)
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", folder / "site", wheel)
    run(sys.executable, HERE / "make_plans.py", folder / "plans", PYTHONPATH=str(folder / "site"), CGC_CACHE="off")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--prefix", type=Path, help="with --part build, torch and triton")
    parser.add_argument("--part", required=True, choices=("build", "torch", "alone", "ray", "triton"))
    args = parser.parse_args()
    folder = args.folder.resolve()
    if args.part == "build":
        build_all(args.prefix.resolve(), folder)
    elif args.part == "torch":
        pytest(sys.executable, folder, *WITH_TORCH, PYTHONPATH=str(folder / "site"),
               CGC_TEST_NCCL=str(args.prefix.resolve().parents[1] / "lib" / "test_nccl"))
    elif args.part == "ray":
        pytest(HERE.parents[1] / ".venv-ray" / "bin" / "python", folder, WITH_RAY, PYTHONPATH=str(folder / "site"))
    elif args.part == "triton":
        pytest(sys.executable, folder, WITH_TRITON, PYTHONPATH=str(folder / "site"), CGC_TRITON_BACKEND=str(args.prefix.resolve() / "lib"),
               CGC_TRITON_SERVER=str(HERE.parents[1] / ".venv-triton" / "pytriton" / "tritonserver"))
    else:
        shutil.rmtree(folder / "venv", ignore_errors=True)
        (wheel,) = (folder / "wheel").glob("*.whl")
        python = make_environment(folder / "venv", wheel)
        pytest(python, folder, HERE, *(f"--ignore={file}" for file in (*WITH_TORCH, WITH_RAY, WITH_TRITON)))


main()
