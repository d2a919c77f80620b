# Writes the training steps and data that tests/e2e needs: make_training_models.py FOLDER
import subprocess
import sys
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/training"


def run(script, *arguments):
    subprocess.run([sys.executable, script, *arguments], check=True, stdout=subprocess.DEVNULL)


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    run(EXAMPLES / "mlp.py", "--dropout", "0", "--out", folder / "mlp.pt")
    run(EXAMPLES / "mlp.py", "--dropout", "0.5", "--out", folder / "mlp_dropout.pt")
    run(EXAMPLES / "shapes.py", "--out", folder)
    run(ROOT / "scripts/export_training_step.py", "--config", EXAMPLES / "shapes.json", "--batch", "64", "--out",
        folder / "shapes.pt")
    run(ROOT / "tests/e2e/bad_steps.py", folder)
    run(ROOT / "tests/e2e/batch_norm_step.py", folder / "batch_norm.pt")
    random = numpy.random.default_rng(0)
    x = random.standard_normal((64, 32), numpy.float32)
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "y.npy", x[:, :10].argmax(1))
    x[40, 3] = numpy.nan
    numpy.save(folder / "nan.npy", x)


main()
