"""Builds the wheel against an installed cgc and tests it without torch and with it, without a network:

    check_wheel.py --prefix PREFIX --folder FOLDER

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

HERE = Path(__file__).resolve().parent
#: What the virtual environment without torch holds besides the wheel: its dependencies and the tests'.
PACKAGES = ("numpy", "nanobind-backend", "pytest", "pluggy", "iniconfig", "packaging", "Pygments")
#: The tests that need torch. All others run without.
WITH_TORCH = tuple(HERE / f"test_{name}.py" for name in ("cache", "dynamo", "fallback", "gpu", "module", "openclip", "preprocess", "torch",
                                                        "train"))
MAX_BYTES = 25_000_000


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


def make_environment(folder, wheel):
    """A virtual environment with the wheel and copies of PACKAGES. Returns its Python."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    site = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"], check=True,
                          capture_output=True, text=True).stdout.strip()
    for package in PACKAGES:
        for file in importlib.metadata.files(package):
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = Path(site, file)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), target)
    run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel)
    run(python, "-m", "pip", "check", "--disable-pip-version-check")
    return python


def main():
    parser = argparse.ArgumentParser()
    for name in ("prefix", "folder"):
        parser.add_argument(f"--{name}", required=True, type=Path)
    args = parser.parse_args()
    shutil.rmtree(args.folder, ignore_errors=True)
    plans, site = args.folder / "plans", args.folder / "site"
    plans.mkdir(parents=True)
    wheel = build(args.prefix, args.folder / "wheel")
    check(wheel)
    pytest = ("-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--plans", plans)

    # Over the packages of this Python, torch among them.
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", site, wheel)
    over = {"PYTHONPATH": str(site), "CGC_CACHE": "off"}
    run(sys.executable, HERE / "make_plans.py", plans, **over)
    run(sys.executable, *pytest, *WITH_TORCH, **over)

    python = make_environment(args.folder / "venv", wheel)
    run(python, "-I", *pytest, HERE, *(f"--ignore={file}" for file in WITH_TORCH))


main()
