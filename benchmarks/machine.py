"""What a figure needs beside it: the machine, the versions, and a matrix product timed in the same process."""

import importlib.metadata
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"


SIDE = 4000


def gemm_seconds(dtype: str = "float64", repeats: int = 3) -> float:
    """The best time of a 4000 x 4000 matrix product; in float64 that is one "GEMM"."""
    A = np.ones((SIDE, SIDE), dtype)
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        A @ A
        best = min(best, time.perf_counter() - start)
    return best


def peak_megabytes() -> float:
    """Peak resident memory of this process in MiB, interpreter and data included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def describe() -> dict:
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        names = [
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ]
        cpu = names[0] if names else cpu
    commit = os.environ.get("PILAE_COMMIT")  # where the history is not at hand
    if commit is None:
        git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
        commit = git.stdout.strip()
    packages = ("pilae", "numpy", "scipy", "scikit-learn", "array-api-compat")
    return {
        "commit": commit,
        "cpu": cpu,
        "cores": os.cpu_count(),
        "python": sys.version.split()[0],
        "versions": {name: _version(name) for name in packages},
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # run from a folder, as on the GPU machine
        return "not installed"


def data_folder() -> Path:
    folder = os.environ.get("PILAE_DATA")
    if not folder or not Path(folder).is_dir():
        sys.exit(
            "Set PILAE_DATA to a folder with mnist.npz, fashion_mnist.npz, svhn_gray.npz (arrays X_train, y_train, "
            "X_test, y_test) and the tables that benchmarks/tabular.py names (arrays X, y), then run this again."
        )
    return Path(folder)


def images(name: str, dtype: str) -> tuple[np.ndarray, ...]:
    """X_train, y_train, X_test, y_test of an image set, pixels divided by 255."""
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as data:
        X, X_test = (data[k].reshape(len(data[k]), -1).astype(dtype) for k in ("X_train", "X_test"))
        X /= 255
        X_test /= 255
        return X, data["y_train"], X_test, data["y_test"]


def run_cases(module: str, measure: Callable[[str], dict], names: Iterable[str], key: str = "cases") -> None:
    """Measure cases one after another, each in a process of its own, into results/<module's name>.json.

    With names on the command line only those are measured, and the others stay. A case that fails is written down as an
    error, and ends the run with that.
    """
    if len(sys.argv) == 3 and sys.argv[1] == "--one":  # the process of one case
        print(json.dumps(measure(sys.argv[2])))
        return
    data_folder()
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{module.rpartition('.')[2]}.json"
    results = json.loads(path.read_text()) if path.exists() and sys.argv[1:] else {key: {}}
    results |= {"command": f"python -m {module}", "machine": describe()}
    failed = False
    for name in sys.argv[1:] or names:
        out = subprocess.run([sys.executable, "-m", module, "--one", name], capture_output=True, text=True)
        failed |= out.returncode != 0
        lines = (out.stderr if out.returncode else out.stdout).strip().splitlines()
        found = {"error": lines[-1]} if out.returncode else json.loads(lines[-1])
        results[key][name] = found | {"commit": results["machine"]["commit"]}
        print(name, found, flush=True)
        path.write_text(json.dumps(results, indent=2) + "\n")
    if failed:
        sys.exit(1)
