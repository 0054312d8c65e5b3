"""Table II: the best width of a single hidden layer, by three ways; and back-propagation at that width.

Stratified 5-fold on all rows (an official split where there is one). For each fold the search (`max_depth=0`) finds
scaling, neurons and ridges, and the width path the width. Then, all else as found:
- the same network once more with everything given: the time beside that of back-propagation, which is given it too;
- brute force: a series of widths, each fitted and tested on every fold, the best taken, as the paper did;
- the width of eq (31) refitted on the paper's other sets;
- back-propagation of input-width-classes on standardised columns, until saturation.
"""

from collections.abc import Callable, Iterator
from statistics import mean

import numpy as np
from sklearn.preprocessing import StandardScaler

from pilae import SHLN, PILAEClassifier, datasets
from studies import data
from studies.data import Split
from studies.measure import seconds_of, times_of
from studies.paper import bp
from studies.paper.fit_formula import TRIPLES, predicted
from studies.paper.paper import DATA, PARTS, TABLES
from studies.paper.setting import QUICK, SEEDS
from studies.store import checksum

QUICK_SETS = ("bupa", "segment", "mfeat")

SERIES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Widths of the brute force, as far as half the rows go."""

REPEATS = 3
"""Of the fit with everything given: a few hundredths of a second, of which the best of three is the least disturbed."""


def folds(name: str) -> Iterator[Split]:
    """Folds of a table, or its official split; float32, as back-propagation sees it."""
    found = datasets.load(name)
    if found.X_test is not None:
        yield Split(found.X, found.y, found.X_test, found.y_test)
        return
    for X, y, X_test, y_test in data.folds(found.X, found.y):
        yield Split(X.astype(np.float32), y, X_test.astype(np.float32), y_test)


def network(**params: object) -> PILAEClassifier:
    """A single hidden layer; what is said of its neurons is "head__name"."""
    return PILAEClassifier(depth=0, head=SHLN(), random_state=0).set_params(**params)


def searched(split: Split) -> tuple[PILAEClassifier, dict]:
    """The network that leave-one-out finds, and what it found as arguments.

    Direct links and a head without hidden neurons are not the paper's network: where the search would take the latter,
    the best with neurons stands in.
    """
    model = PILAEClassifier(max_depth=0, head=SHLN(direct_links=False), random_state=0).fit(split.X, split.y)
    hidden = [row for row in model.search_ if row["head"] == "shln"]
    chosen = [row for row in hidden if row["chosen"]]
    row = chosen[0] if chosen else min(hidden, key=lambda row: row["loss"])
    found = {
        "input_scaling": row["input_scaling"],
        "head__encoder_ridge": row["encoder_ridge"],
        "head__anchors": row["neurons"],
        "head__activation": row["activation"],
    }
    return (model if chosen else network(**found).fit(split.X, split.y)), found


def with_width(split: Split, params: dict, width: int) -> float:
    """Test accuracy at another width, the ridge found by leave-one-out."""
    width = min(width, len(np.unique(split.X, axis=0)) - 1)  # neurons are made from distinct rows
    return network(**params, head__width=width).fit(split.X, split.y).score(split.X_test, split.y_test)


def back_propagation(split: Split, width: int, target: float, seed: int) -> dict:
    scaler = StandardScaler().fit(split.X)
    rows = bp.tensors(scaler.transform(split.X), split.y, scaler.transform(split.X_test), split.y_test)
    curve = bp.classifier(*rows, [width], seed)
    return curve.summary() | {"seconds_to_same_accuracy": curve.seconds_to(target)}


def measured(name: str, paper_name: str | None) -> dict:
    splits = list(folds(name))
    models, search, params, alone = [], [], [], []
    for split in splits:
        seconds, (model, found) = seconds_of(lambda split=split: searched(split))
        models.append(model)
        search.append(seconds)
        params.append(found)
        again = network(**found, head__width=model.head_width_, ridge=model.ridge_)
        alone.append(min(times_of(lambda m=again, split=split: m.fit(split.X, split.y), REPEATS)))
    accuracies = [m.score(s.X_test, s.y_test) for m, s in zip(models, splits, strict=True)]
    result = {
        "checksum": checksum(splits[0].X, splits[0].X_test),
        "folds": len(splits),
        "training_rows": len(splits[0].X),
        "widths": [m.head_width_ for m in models],
        "accuracy": mean(accuracies),
        "accuracies": accuracies,
        "leave_one_out": mean(m.loo_score_ for m in models),
        "seconds_with_search": mean(search),
        "seconds": mean(alone),
        "found": params[0],
    }
    fits = list(zip(splits, params, strict=True))
    if paper_name is not None:
        width = round(predicted(paper_name, TRIPLES))
        result["formula"] = {
            "width": width,
            "accuracy": mean(with_width(s, p, width) for s, p in fits) if width > 0 else None,
        }
    if not QUICK:
        seconds, series = seconds_of(
            lambda: {w: mean(with_width(s, p, w) for s, p in fits) for w in SERIES if w <= len(splits[0].X) // 2}
        )
        best = max(series, key=series.__getitem__)
        result["brute_force"] = {"width": best, "accuracy": series[best], "series": series, "seconds": seconds}
    result["bp"] = {
        seed: [
            back_propagation(split, m.head_width_, accuracy, seed)
            for split, m, accuracy in zip(splits, models, accuracies, strict=True)
        ]
        for seed in SEEDS
    }
    return result


def cells() -> dict[str, Callable[[], dict]]:
    names: dict[str, str | None] = {}
    for row in TABLES:
        names.setdefault(DATA[row.name], row.name)
    names |= {PARTS[name]: None for name in list(names) if name in PARTS}
    chosen = QUICK_SETS if QUICK else tuple(names)
    return {name: lambda name=name: measured(name, names[name]) for name in chosen}
