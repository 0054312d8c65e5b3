"""Today's code beside that of another checkout: the same fits, in turns, with one thread.

    PILAE_DATA=folder python -m studies.speed.against --source OTHER/src

Each case is timed in a process of its own, five times with either code, alternating, so that whatever else the machine
does falls on both; ratios are of medians of processor time (one thread: what others hold up does not count). Without
PILAE_DATA made-up rows of the same shape are used. Writes results/against.json.
"""

import argparse
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris

from studies.data import first_rows
from studies.measure import describe
from studies.store import read, results_of, write

ROUNDS = 5
ONE = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

Case = Callable[[], Callable[[], object]]


def with_head(kind: Callable, neurons: int, **params: object):
    """An estimator under an SHLN; in code from before `head=SHLN(...)` its width is a parameter of the estimator."""
    import pilae

    head = {"head": pilae.SHLN(neurons)} if hasattr(pilae, "SHLN") else {"head_width": neurons}
    return kind(**head, **params)


def no_argument(load: Callable) -> Case:
    def made() -> Callable[[], object]:
        from pilae import PILAEClassifier, PILAERegressor

        X, y = load(return_X_y=True)
        kind = PILAERegressor if y.dtype.kind == "f" else PILAEClassifier
        return lambda: kind(random_state=0).fit(X, y)

    return made


def segment() -> Callable[[], object]:
    from pilae import PILAEClassifier

    X, y = first_rows("segment", 2310, 19, 7)
    return lambda: PILAEClassifier(random_state=0).fit(X, y)


def paper() -> Callable[[], object]:
    from pilae import PILAEClassifier

    X, y = first_rows("mnist", 6000, 784, 10)
    return lambda: with_head(PILAEClassifier, 2000, width=[705, 634], ridge=1e-3, random_state=0).fit(X, y)


def images() -> Callable[[], object]:
    from pilae import ConvPILAE

    digits = load_digits()
    return lambda: ConvPILAE(max_features=800, random_state=0).fit(digits.images, digits.target)


def stack() -> Callable[[], object]:
    from pilae import StackedPILAE

    X, _ = load_digits(return_X_y=True)
    return lambda: StackedPILAE(width=[60, 48, 36], random_state=0).fit(X).score_samples(X)


def given():
    """A model of digits with its structure given, and its rows."""
    from pilae import PILAEClassifier

    X, y = load_digits(return_X_y=True)
    return with_head(PILAEClassifier, 300, depth=1, ridge=1e-3, random_state=0).fit(X, y), X, y


def updates() -> Callable[[], object]:
    model, X, y = given()

    def both() -> None:
        for _ in range(10):
            model.partial_fit(X[:100], y[:100]).forget(X[:100], y[:100])
            model.predict(X[:10])

    return both


def one_row() -> Callable[[], object]:
    model, X, _ = given()
    return lambda: [model.predict(X[:1]) for _ in range(500)]


def many_rows() -> Callable[[], object]:
    model, X, _ = given()
    return lambda: [model.predict_proba(X) for _ in range(20)]


def files() -> Callable[[], object]:
    import pilae

    model, _, _ = given()

    def there_and_back() -> None:
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "model.pilae")
            pilae.load(Path(folder) / "model.pilae")

    return there_and_back


def blocks() -> Callable[[], object]:
    from pilae import PILAERegressor, scan_blocks

    rng = np.random.default_rng(0)
    parts = [(X, X[:, 0] * X[:, 1]) for X in (rng.standard_normal((5000, 20)) for _ in range(10))]
    return lambda: with_head(PILAERegressor, 200, depth=0, ridge=1e-3, random_state=0).fit(scan_blocks(parts))


CASES: dict[str, Case] = {
    "iris, no argument": no_argument(load_iris),
    "breast cancer, no argument": no_argument(load_breast_cancer),
    "diabetes, no argument": no_argument(load_diabetes),
    "segment, no argument": segment,
    "MNIST, 6,000 rows, paper's network": paper,
    "digits as images, searched": images,
    "digits, three autoencoders": stack,
    "50,000 rows in blocks": blocks,
    "ten updates": updates,
    "500 predictions of one row": one_row,
    "20 times probabilities of 1,797 rows": many_rows,
    "saved and loaded": files,
}


def seconds(name: str, source: str) -> float:
    """Processor seconds of one case, after one call that is not timed."""
    environment = os.environ | ONE | {"PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", __spec__.name, "--child", name]
    out = subprocess.run(command, capture_output=True, text=True, env=environment)
    if out.returncode:
        sys.exit(out.stderr)
    found = json.loads(out.stdout.splitlines()[-1])
    if not Path(found["pilae"]).is_relative_to(Path(source).resolve()):
        sys.exit(f"pilae was taken from {found['pilae']}, not from {source}.")
    return found["seconds"]


def child(name: str) -> None:
    import pilae

    work = CASES[name]()
    work()
    gc.collect()  # or a full collection, longer than a short case, falls by chance into one code's time
    start = time.process_time()
    work()
    print(json.dumps({"seconds": time.process_time() - start, "pilae": str(Path(pilae.__file__).resolve())}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--source")
    parser.add_argument("--child")
    parser.add_argument("cases", nargs="*")
    asked = parser.parse_args()
    if asked.child:
        return child(asked.child)
    if not asked.source:
        parser.error("--source OTHER/src names the code to compare with")
    sources = {"now": str(Path(__file__).parents[2] / "src"), "before": asked.source}
    path = results_of("speed", "against")
    results = read(path) | {"command": f"python -m {__spec__.name} --source OTHER/src", "machine": describe()}
    found = results.setdefault("cases", {})
    for name in asked.cases or CASES:
        times: dict[str, list[float]] = {which: [] for which in sources}
        for _ in range(ROUNDS):
            for which, source in sources.items():
                times[which].append(seconds(name, source))
        medians = {which: statistics.median(values) for which, values in times.items()}
        found[name] = medians | {"ratio": medians["now"] / medians["before"], "commit": results["machine"]["commit"]}
        print(f"{name}: {found[name]['ratio']:.3f}", flush=True)
        write(path, results)
    print(f"mean: {math.exp(statistics.mean(math.log(case['ratio']) for case in found.values())):.3f}")
    return None


if __name__ == "__main__":
    main()
