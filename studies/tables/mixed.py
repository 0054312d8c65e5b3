"""pilae beside skrub's pipelines on mixed tables: text, dates, gaps and identifiers left in.

    python -m studies.tables.mixed [--tables name ...] [--parts folds command seeds] [--folds 5] [--repeats 1]

Run it in an environment of its own (`make study-mixed`, packages in studies/tables/mixed.txt); with PILAE_DATA the
eight tables of its folder `messy` are measured too. The tables and the rules they were chosen by are in
`studies.tables.mixed_tables`. Three parts, each with one thread:

- folds: repeated 5-fold, the same for all. "pilae" is the estimator on the DataFrame. "boosting" and "linear" are
  `skrub.tabular_pipeline` with HistGradientBoosting and with LogisticRegression or Ridge. Accuracy or R²,
  log-loss or root mean squared error, processor seconds of fit and predict; of pilae its own estimate of the score, and
  how many targets its 90% intervals hold, by fifths of the prediction.
- command: processor seconds of the whole command `pilae fit`, imports and held-out rows included, on the training rows
  of the first fold as a CSV file, beside those of a script with skrub's boosting; the file's size and the processor
  seconds of loading it, imports not included.
- seeds: the score on the first fold with ten seeds, and with two BLAS threads.

Nothing is chosen by these scores. Writes studies/tables/results/mixed.json, cell by cell, so that it can be stopped and
continued: what is there is measured again only with `--again`. What fails is written down with its error.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from studies.data import Split
from studies.measure import describe, version
from studies.store import read, results_of, write
from studies.tables.mixed_tables import FOLDS, TABLES, folds, load, shape

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
"""What the libraries look at when they are loaded; pilae's own threads go by the last."""

MODELS = {"pilae": "pilae", "boosting": "skrub", "linear": "skrub"}
"""With the package whose version is written down."""

PARTS = ("folds", "command", "seeds")

SEEDS = 10

COVERAGE = 0.9

TARGET = "target"
"""What the column to predict is called in files."""

SCRIPT = Path(__file__).parent / "skrub_script.py"


# --- models ---


class Pilae:
    """The estimator on the DataFrame."""

    def __init__(self, classes: bool, seed: int = 0) -> None:
        self.classes, self.seed = classes, seed

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> None:
        import pilae

        make = pilae.PILAEClassifier if self.classes else pilae.PILAERegressor
        self.model = make(random_state=self.seed).fit(X, y)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict(X)

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(X)

    @property
    def classes_(self) -> np.ndarray:
        return self.model.classes_

    def intervals(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_interval(X, COVERAGE)

    @property
    def loo(self) -> float:
        return float(self.model.loo_score_)


def skrub_model(name: str, classes: bool) -> Any:
    import skrub
    from sklearn.linear_model import LogisticRegression, Ridge

    if name == "boosting":
        return skrub.tabular_pipeline("classifier" if classes else "regressor")
    return skrub.tabular_pipeline(LogisticRegression(max_iter=1000) if classes else Ridge())


def make_model(name: str, classes: bool) -> Any:
    return Pilae(classes) if name == "pilae" else skrub_model(name, classes)


# --- measuring ---


def one_thread() -> None:
    """One thread for every library: for those that are loaded later by what they read then, for the others now."""
    from threadpoolctl import threadpool_limits

    os.environ.update(dict.fromkeys(THREADS, "1"))
    threadpool_limits(1)


def attempt(function: Callable[[], dict]) -> dict:
    """A measurement, or why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # iterations, columns that are constant in a fold
            return function()
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever a model raises on one table, the others go on
        return {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}


def measure(model: Any, fold: Split, classes: bool) -> dict:
    """Score, loss and processor seconds of one model on one fold; of pilae also what it says of itself."""
    start = time.process_time()
    model.fit(fold.X, fold.y)
    said = np.asarray(model.predict(fold.X_test))
    found = {"seconds": time.process_time() - start}
    found |= of_classes(model, said, fold) if classes else of_numbers(said, fold.y_test)
    if isinstance(model, Pilae):
        found["loo"] = model.loo
        if not classes:
            found["coverage"] = coverage(model.intervals(fold.X_test), said, fold.y_test)
    return found


def of_classes(model: Any, said: np.ndarray, fold: Split) -> dict:
    """Accuracy and log-loss; rows of a class that was not in the training part have no loss."""
    right = said.astype(str) == fold.y_test.astype(str)
    codes = {str(name): k for k, name in enumerate(model.classes_)}
    known = np.array([str(name) in codes for name in fold.y_test])
    places = [codes[str(name)] for name in fold.y_test[known]]
    shares = np.asarray(model.predict_proba(fold.X_test), dtype=np.float64)[known]
    chance = shares[np.arange(len(places)), places] / shares.sum(axis=1)
    loss = -np.log(np.clip(chance, np.finfo(float).eps, None)).mean()
    return {"score": float(right.mean()), "loss": float(loss), "standard_error": standard_error(right.astype(float))}


def of_numbers(said: np.ndarray, y: np.ndarray) -> dict:
    """R² and root mean squared error."""
    errors, variance = (y - said) ** 2, float(np.var(y))
    score = 1 - errors.mean() / variance
    return {
        "score": float(score),
        "loss": float(errors.mean() ** 0.5),
        "standard_error": standard_error(errors / variance),
    }


def standard_error(values: np.ndarray) -> float:
    """Of their mean."""
    return float(values.std(ddof=1) / len(values) ** 0.5)


def coverage(ends: np.ndarray, said: np.ndarray, y: np.ndarray) -> list[list[int]]:
    """By fifths of the prediction: how many targets lie inside their interval, and how many there are."""
    inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    return [[int(inside[part].sum()), len(part)] for part in np.array_split(np.argsort(said, kind="stable"), 5)]


# --- from the shell ---


def written(folder: Path, X: pd.DataFrame, y: np.ndarray) -> Path:
    """The rows as a CSV file."""
    path = folder / "train.csv"
    X.assign(**{TARGET: y}).to_csv(path, index=False)
    return path


def fit_words(table: Path, model: Path, classes: bool) -> list[str]:
    task = "classification" if classes else "regression"
    return ["fit", str(table), "--target", TARGET, "--task", task, "-o", str(model), "--quiet"]


def processor_seconds(command: list[str]) -> float:
    """Of a process with all its threads, its imports included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if out.returncode:
        raise RuntimeError((out.stderr or out.stdout).strip().splitlines()[-1])
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def loading_seconds(package: str, path: Path) -> float:
    """Processor seconds of `package.load` in a new process, the second time: the first imports what the file needs."""
    code = f"""
import time, {package} as package
package.load({str(path)!r})
start = time.process_time()
package.load({str(path)!r})
print(time.process_time() - start)
"""
    out = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return float(out.stdout.strip().splitlines()[-1])


def command(fold: Split, classes: bool) -> dict:
    """`pilae fit` and a script with skrub's boosting on the same file."""
    with tempfile.TemporaryDirectory() as folder:
        table, ours, theirs = written(Path(folder), fold.X, fold.y), Path(folder) / "m.pilae", Path(folder) / "m.joblib"
        kind = "classifier" if classes else "regressor"
        return {
            "pilae": {
                "seconds": processor_seconds([sys.executable, "-m", "pilae.cli", *fit_words(table, ours, classes)]),
                "megabytes": ours.stat().st_size / 1e6,
                "load_seconds": loading_seconds("pilae", ours),
            },
            "boosting": {
                "seconds": processor_seconds([sys.executable, str(SCRIPT), str(table), TARGET, str(theirs), kind]),
                "megabytes": theirs.stat().st_size / 1e6,
                "load_seconds": loading_seconds("joblib", theirs),
            },
        }


# --- seeds and threads ---


def of_seed(fold: Split, classes: bool, seed: int) -> dict:
    model = Pilae(classes, seed)
    model.fit(fold.X, fold.y)
    said = np.asarray(model.predict(fold.X_test))
    right = (said.astype(str) == fold.y_test.astype(str)).astype(float)
    found = {"score": float(right.mean()), "standard_error": standard_error(right)}
    return found if classes else of_numbers(said, fold.y_test)


def with_two_threads(name: str, rows: int) -> dict:
    """Seed 0 again in a process of its own."""
    call = [sys.executable, "-m", "studies.tables.mixed", "--tables", name, "--rows", str(rows), "--two-threads"]
    out = subprocess.run(call, env=os.environ | dict.fromkeys(THREADS, "2"), capture_output=True, text=True, check=True)
    return json.loads(out.stdout.strip().splitlines()[-1])


# --- all of it ---


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m studies.tables.mixed", description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES), metavar="name")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), metavar="name")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="part")
    parser.add_argument("--folds", type=int, default=FOLDS, help="the first so many of five")
    parser.add_argument("--repeats", type=int, default=1, help="of these folds")
    parser.add_argument("--rows", type=int, default=5000, help="tables of more are cut to that many")
    parser.add_argument("--again", action="store_true", help="measure what is there already, too")
    parser.add_argument("--two-threads", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(words)


def cells(name: str, options: argparse.Namespace) -> Iterator[tuple[tuple[str, ...], Callable[[], dict]]]:
    """Of one table: the place of every cell in its results, and what measures it."""
    classes = TABLES[name].classes
    X, y = load(name, options.rows)
    for repeat in range(options.repeats if "folds" in options.parts else 0):
        for k, fold in zip(range(options.folds), folds(X, y, classes, repeat), strict=False):
            for model in options.models:
                yield (
                    ("folds", model, f"{repeat}.{k}"),
                    lambda model=model, fold=fold: measure(make_model(model, classes), fold, classes),
                )
    first = next(folds(X, y, classes, 0))
    if "command" in options.parts:
        yield ("command", "all"), lambda: command(first, classes)
    for seed in range(SEEDS if "seeds" in options.parts else 0):
        yield ("seeds", str(seed)), lambda seed=seed: of_seed(first, classes, seed)
    if "seeds" in options.parts:
        yield ("seeds", "two threads"), lambda: with_two_threads(name, options.rows)


def run(results: dict, options: argparse.Namespace) -> Iterator[str]:
    """Fill in what is missing, one cell after another; after each a line that says what was found."""
    commit = describe()["commit"]
    for name in options.tables:
        try:
            found = shape(*load(name, options.rows), TABLES[name].classes)
        except FileNotFoundError:
            yield f"{name}: not here (PILAE_DATA names the folder that has messy/ in it)"
            continue
        table = results["tables"].setdefault(name, {})
        table |= found
        for place, make in cells(name, options):
            inner = table
            for key in place[:-1]:
                inner = inner.setdefault(key, {})
            if options.again or place[-1] not in inner:
                inner[place[-1]] = attempt(make) | {"commit": commit}
                yield f"{name:<16}{' '.join(place):<24}{inner[place[-1]]}"


def in_order(results: dict) -> dict:
    """Tables in the order they have here, whichever was measured first."""
    return results | {"tables": {name: results["tables"][name] for name in TABLES if name in results["tables"]}}


def main() -> None:
    options = arguments(sys.argv[1:])
    if options.two_threads:
        [name] = options.tables
        first = next(folds(*load(name, options.rows), TABLES[name].classes, 0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(json.dumps(of_seed(first, TABLES[name].classes, 0)))
        return
    one_thread()
    path = results_of("tables", "mixed")
    results = {"tables": {}} | read(path)
    if results.get("rows", options.rows) != options.rows:
        sys.exit(f"{path.name} has tables of up to {results['rows']} rows: run with that many, or move the file away.")
    results |= {"command": "python -m studies.tables.mixed", "machine": describe(), "rows": options.rows}
    results["versions"] = {package: version(package) for package in ("pilae", "skrub", "scikit-learn", "pandas")}
    for line in run(results, options):
        write(path, in_order(results))
        print(line, flush=True)


if __name__ == "__main__":
    main()
