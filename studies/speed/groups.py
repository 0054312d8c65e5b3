"""Leave-group-out beside leave-one-out: 100,000 rows in 10,000 groups.

    python -m studies.speed.groups [--quick] [case ...]    # --quick: a tenth of the rows

Processor seconds of one core, the two one after another, the lowest of two. First the engine alone, every row scored:
the ridge of layers of so many columns, and all widths of one on the 1,500 rows that choose it; then a whole fit, which
scores 10,000 rows. Writes studies/speed/results/groups.json.
"""

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from studies.store import run_cases

ROWS, SIZE, COLUMNS, CLASSES = 100_000, 10, 40, 5
BATCH = 5000
RIDGES = [1e-3, 1e-2, 1e-1]


def data(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    group = np.arange(rows) // SIZE
    X = rng.standard_normal((rows, COLUMNS)) + rng.standard_normal((group[-1] + 1, COLUMNS))[group]
    return X, (X[:, :CLASSES] + rng.standard_normal((rows, CLASSES))).argmax(axis=1), group


def compared(by_row: Callable[[], object], by_group: Callable[[], object]) -> dict[str, float]:
    def seconds(call: Callable[[], object]) -> float:
        found = []
        for _ in range(2):
            start = time.process_time()
            call()
            found.append(time.process_time() - start)
        return min(found)

    return {"rows_seconds": seconds(by_row), "groups_seconds": seconds(by_group)}


def engine(width: int, widths: bool, rows: int) -> dict[str, float]:
    from pilae._engine.factors import RidgeFactors
    from pilae._engine.loo import best_ridge
    from pilae._engine.widths import best_width

    X, y, group = data(rows)
    F = np.tanh(X @ np.random.default_rng(1).standard_normal((COLUMNS, width)) / 4)
    F = (F - F.mean(axis=0)) / F.std(axis=0)
    Z, ones, scale = np.eye(CLASSES)[y], np.ones(rows), np.ones(CLASSES)
    mean = Z.mean(axis=0)
    factors = RidgeFactors(F.T @ F, F.T @ (Z - mean), float(rows), nested=widths)
    count = 1500 if widths else rows
    parts = [slice(start, min(start + BATCH, count)) for start in range(0, count, BATCH)]

    def batches(*groups: np.ndarray) -> Callable:
        columns = (F, Z, ones, ones, ones, *groups)
        return lambda: iter([tuple(column[part] for column in columns) for part in parts])

    if not widths:
        choose = partial(best_ridge, factors, mean, scale, smallest=1e-4)
        return compared(lambda: choose(batches()), lambda: choose(batches(group)))
    mass = np.bincount(group[:count]).astype(float)
    find = partial(best_width, factors, mean, scale)
    return compared(
        lambda: find(batches(), ones[:count], ones[:count], RIDGES, 1),
        lambda: find(batches(group), mass, mass, RIDGES, 1),
    )


def fit(width: int, rows: int) -> dict[str, float]:
    from pilae import SHLN, PILAEClassifier

    X, y, group = data(rows)
    model = PILAEClassifier(depth=0, head=SHLN(width=width), random_state=0)
    return compared(lambda: model.fit(X, y), lambda: model.fit(X, y, groups=group))


def cases(rows: int) -> dict[str, Callable[[], dict]]:
    return {
        "ridge of 100 columns": partial(engine, 100, False, rows),
        "ridge of 400 columns": partial(engine, 400, False, rows),
        "ridge of 700 columns": partial(engine, 700, False, rows),
        "every width up to 700": partial(engine, 700, True, rows),
        "fit, 1,000 neurons given": partial(fit, 1000, rows),
    }


if __name__ == "__main__":
    run_cases(__spec__.name, cases(ROWS // 10 if "--quick" in sys.argv else ROWS))
