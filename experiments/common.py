"""What the experiments share: the data as folds, results that can be continued, the machine they were measured on."""

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold

from benchmarks.machine import describe
from pilae import datasets

QUICK = os.environ.get("QUICK", "") not in ("", "0")
"""A run of minutes: fewer sets, rows, seeds and epochs, into files of its own."""

HERE = Path(__file__).parent
RESULTS = HERE / "results" / ("quick" if QUICK else "full")

UNFINISHED = HERE.parent / ".local" / "tables" / RESULTS.name
"""Where a run that is not finished keeps what it has."""

TOLERANCE = {"pilae": 1e-3, "bp": 1e-2}
"""How far accuracies of the same commands on another machine may lie from those in the repository: sums in another
order move an output that is nearly a tie."""

BACK_PROPAGATION = ("bp", "greedy", "end_to_end", "bp test accuracy")
"""Keys under which results are those of back-propagation."""

SEEDS = (0,) if QUICK else (0, 1, 2)
"""Of back-propagation."""

COMMAND = "make tables QUICK=1" if QUICK else "make tables"


class Split(NamedTuple):
    """Rows to learn from, rows to test on."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def folds(name: str, splits: int = 5) -> Iterator[Split]:
    """Stratified folds of a table, missing values filled by the training rows' median; an official split as it is."""
    data = datasets.load(name)
    if data.X_test is not None:
        yield Split(data.X, data.y, data.X_test, data.y_test)
        return
    for train, test in StratifiedKFold(splits, shuffle=True, random_state=0).split(data.X, data.y):
        fill = SimpleImputer(strategy="median", keep_empty_features=True).fit(data.X[train])
        X, X_test = (fill.transform(data.X[rows]).astype(np.float32) for rows in (train, test))  # as back-propagation
        yield Split(X, data.y[train], X_test, data.y[test])


def images(name: str, rows: int | None = None) -> Split:
    """An image set as float32 rows of pixels from 0 to 1, its official split; `rows`: that many training rows, drawn
    at random."""
    data = datasets.load(name)
    if data.X_test is None or data.y_test is None:
        raise ValueError(f"{name} from {data.source} has no official split.")
    chosen = slice(None) if rows is None else np.random.default_rng(0).permutation(len(data.X))[:rows]
    return Split(pixels(data.X[chosen]), data.y[chosen], pixels(data.X_test), data.y_test)


def pixels(X: np.ndarray) -> np.ndarray:
    """Rows of pixels from 0 to 1. Colours become gray (SVHN), stereo pairs are averaged over 3 x 3 pixels (NORB)."""
    n = len(X)
    if X.shape[1:] == (2, 96, 96):
        X = X.reshape(n, 2, 32, 3, 32, 3).mean(axis=(3, 5), dtype=np.float32)
    elif X.ndim == 4 and X.shape[3] == 3:
        X = X @ np.array([0.299, 0.587, 0.114], dtype=np.float32)
    X = X.reshape(n, -1).astype(np.float32)
    X /= 255
    return X


def seconds_of(function: Callable[[], object]) -> tuple[float, object]:
    """Time of one call, and what it gave."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def read(part: str, folder: Path | None = None) -> dict:
    """The results of a part."""
    path = (folder or RESULTS) / f"{part}.json"
    return json.loads(path.read_text()) if path.exists() else {"cells": {}}


def write(part: str, results: dict, folder: Path | None = None) -> None:
    """Whole or not at all."""
    folder = folder or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{part}.json"
    whole = path.with_suffix(".part")
    whole.write_text(json.dumps(results, indent=1) + "\n")
    whole.replace(path)


def run(part: str, cells: dict[str, Callable[[], dict]], only: str | None = None) -> None:
    """Measure all cells of a part, or one.

    Each is written down in UNFINISHED when it is done, so that a run that was interrupted goes on from there (until
    `forget_unfinished`); a part that is finished is compared with the results in the repository and takes their place.
    A cell whose data is not here is written down as missing, unless the repository has numbers for it: they stay.
    """
    folder = RESULTS if only else UNFINISHED
    found = read(part, folder)
    found |= {"command": COMMAND, "machine": describe() | {"torch": _torch_version()}}
    left = [only] if only else [name for name in cells if "missing" in found["cells"].get(name, {"missing": ""})]
    for k, name in enumerate(left, 1):
        print(f"{part}: {name} ({k} of {len(left)}) ...", end=" ", file=sys.stderr, flush=True)
        try:
            seconds, result = seconds_of(cells[name])
        except FileNotFoundError as error:
            where = os.environ.get("PILAE_DATA") or "PILAE_DATA"  # a folder on this machine says nothing to others
            seconds, result = 0.0, {"missing": str(error).replace(where, "PILAE_DATA")}
        whole = {**result, "commit": found["machine"]["commit"], "took": round(seconds, 1)}
        found["cells"][name] = json.loads(json.dumps(whole))  # keys are strings from now on, as when read again
        write(part, found, folder)
        print("not available" if "missing" in result else f"{seconds:.0f} s", file=sys.stderr, flush=True)
    if only is None:
        before = read(part)["cells"]
        print(compared(part, before, found["cells"]), file=sys.stderr)
        kept = {name for name in cells if "missing" in found["cells"][name] and "missing" not in before.get(name, {})}
        kept &= set(before)
        if kept:
            print(f"{part}: kept from the repository, as their data is not here: {', '.join(kept)}", file=sys.stderr)
        write(part, found | {"cells": {name: (before if name in kept else found["cells"])[name] for name in cells}})


def forget_unfinished() -> None:
    """The run is over: the next one begins anew."""
    for path in UNFINISHED.glob("*.json"):
        path.unlink()


def compared(part: str, before: dict, now: dict) -> str:
    """How the accuracies of a new run lie to those in the repository."""
    pairs = [pair for name in now if name in before for pair in _accuracies(name, before[name], now[name])]
    far = [
        f"{part}: {name}: {new:.4f}, in the repository {old:.4f}"
        for name, old, new in pairs
        if abs(new - old) > TOLERANCE["bp" if "/bp/" in name else "pilae"]
    ]
    words = f"within {100 * TOLERANCE['pilae']:g} points (back-propagation {100 * TOLERANCE['bp']:g})"
    return "\n".join(
        [*far, f"{part}: {len(pairs) - len(far)} of {len(pairs)} accuracies as in the repository, {words}"]
    )


def _accuracies(name: str, before: object, now: object) -> Iterator[tuple[str, float, float]]:
    """(place, before, now) of every accuracy in two nested results."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key, value in now.items():
            if key not in before:
                continue
            inner = f"{name}/bp/{key}" if key in BACK_PROPAGATION else f"{name}/{key}"
            if (
                key.endswith("accuracy")
                and not key.startswith("seconds")
                and isinstance(value, float)
                and isinstance(before[key], float)
            ):
                yield inner, before[key], value
            else:
                yield from _accuracies(inner, before[key], value)
    elif isinstance(before, list) and isinstance(now, list):
        for k, (old, new) in enumerate(zip(before, now, strict=False)):
            yield from _accuracies(f"{name}/{k}", old, new)


def checksum(*arrays: np.ndarray) -> str:
    """Of the arrays a cell was measured on, as they were given to the network."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _torch_version() -> str:
    import torch

    return torch.__version__
