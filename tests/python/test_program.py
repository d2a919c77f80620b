"""The program cgc of the wheel, without torch."""
import subprocess
import sys
from pathlib import Path

import cgc
from numpy.testing import assert_allclose

CGC = Path(sys.executable).with_name("cgc")


def test_compiles_an_exported_program_for_cuda(plans, expected, tmp_path):
    plan = tmp_path / "tiny.cgplan"
    subprocess.run([CGC, "compile", plans / "tiny.pt2", "-o", plan, "--batch", "1,8"], check=True)
    with cgc.load(plan, executor="reference") as session:
        assert_allclose(session.run("forward", expected["image"]), expected["image_features"], rtol=1e-4, atol=1e-5)


def test_fails_with_its_status():
    done = subprocess.run([CGC, "compile", "missing.pt2", "-o", "never.cgplan"], capture_output=True, text=True)
    assert done.returncode == cgc.Code.INVALID_FILE and "'missing.pt2' does not exist" in done.stderr
