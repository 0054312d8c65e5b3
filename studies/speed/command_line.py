"""From a file to a model: `pilae fit` on a table of Covertype's shape, and the report of an image model.

    python -m studies.speed.command_line [case]

Writes studies/speed/results/command_line.json. The table is made up (ten whole-numbered columns, 44 columns of zeros
and ones, seven classes by a noisy, curved rule): its shape and types are Covertype's, its scores mean nothing.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from studies.data import images
from studies.measure import seconds_of
from studies.store import run_cases

ROWS, WIDE, BINARY, CLASSES = 581_012, 10, 44, 7


def write_table(path: Path) -> None:
    """Integers and a class, as CSV."""
    rng = np.random.default_rng(0)
    teacher = rng.standard_normal((WIDE + BINARY, CLASSES))
    with path.open("w") as file:
        file.write(",".join([f"x{k}" for k in range(WIDE + BINARY)] + ["kind"]) + "\n")
        for start in range(0, ROWS, 50_000):
            n = min(50_000, ROWS - start)
            X = np.hstack([rng.integers(0, 4000, (n, WIDE)), (rng.random((n, BINARY)) < 0.1).astype(int)])
            Z = np.hstack([X[:, :WIDE] / 2000 - 1, X[:, WIDE:]])
            y = (np.tanh(Z @ teacher) + 0.3 * rng.standard_normal((n, CLASSES))).argmax(axis=1)
            np.savetxt(file, np.column_stack([X, y]), fmt="%d", delimiter=",")


def fit() -> dict:
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        write_table(table)
        command = ["fit", table, "--target", "kind", "-o", Path(folder) / "model.pilae", "--json", "--quiet"]
        call = [sys.executable, "-m", "pilae.cli", *command]
        seconds, done = seconds_of(lambda: subprocess.run(call, capture_output=True, check=True))
        found = json.loads(done.stdout)
        return {
            "seconds": seconds,
            "peak_megabytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
            "file_megabytes": table.stat().st_size / 2**20,
            "rows": found["rows"] + found["held_out_rows"],
            "columns": found["columns"],
            "leave_one_out": found["leave_one_out"],
            "held_out": found["held_out"],
        }


def report() -> dict:
    """Of an MNIST model on its test rows."""
    from pilae import PILAEClassifier

    X, y, X_test, y_test = images("mnist")
    model = PILAEClassifier(random_state=0).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        seconds, _ = seconds_of(lambda: model.report(X_test, y_test, title="MNIST").save(path))
        return {"seconds": seconds, "report_megabytes": path.stat().st_size / 2**20}


if __name__ == "__main__":
    run_cases(__spec__.name, {"fit": fit, "mnist report": report})
