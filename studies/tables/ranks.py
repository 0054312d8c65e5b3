"""Mean ranks of models over tables, which of them differ, and a picture of both, from the results of `peers`.

    python -m studies.tables.ranks

Writes studies/tables/ranks.svg and ranks.png. The critical difference is Nemenyi's, at 5%: models whose mean ranks lie
closer than that are not told apart by this many tables, and a bar joins them (Demšar, 2006).
"""

import os
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from studies.store import read, results_of

OWN = "pilae"
COLOURS = {True: "#1b7f5c", False: "#333333"}
"""Of pilae, and of the others."""


class Compared(NamedTuple):
    """Models that have every table, on the folds that all of them have."""

    models: list[str]
    tables: list[str]
    scores: np.ndarray
    """Tables x models."""

    @property
    def ranks(self) -> np.ndarray:
        """The best of a table has 1; equals share the mean of their places."""
        return rankdata(-self.scores, axis=1).mean(axis=0)


def figures(table: dict, model: str, key: str) -> dict[str, float]:
    """What was measured of a model on a table, by fold; a fit that failed has no figure."""
    return {fold: cell[key] for fold, cell in table["models"].get(model, {}).items() if key in cell}


def common(table: dict, models: list[str], key: str) -> list[str]:
    """Folds of a table on which all these models have a figure."""
    found = [set(figures(table, model, key)) for model in models]
    return sorted(set.intersection(*found)) if found else []


def average(table: dict, model: str, key: str, folds: list[str]) -> float:
    found = figures(table, model, key)
    return mean(found[fold] for fold in folds)


def kind_of(results: dict, classes: bool | None) -> dict[str, dict]:
    """The tables of one kind, or of both, that something was measured on."""
    return {name: table for name, table in results["tables"].items() if classes in (None, "classes" in table)}


def compare(results: dict, classes: bool | None, key: str = "score") -> Compared:
    """Means of every model over the folds that all have; less is better of log-loss, so it counts as negative."""
    tables = kind_of(results, classes)
    models = [name for name in results["models"] if all(figures(table, name, key) for table in tables.values())]
    kept = [name for name, table in tables.items() if common(table, models, key)]
    sign = -1 if key == "log_loss" else 1
    scores = [
        [sign * average(tables[name], model, key, common(tables[name], models, key)) for model in models]
        for name in kept
    ]
    return Compared(models, kept, np.array(scores, dtype=float).reshape(len(kept), len(models)))


def critical_difference(models: int, tables: int, level: float = 0.05) -> float:
    """How far two mean ranks have to lie from one another to be called different (Nemenyi)."""
    q = studentized_range.ppf(1 - level, models, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(models * (models + 1) / (6 * tables)))


def friedman(found: Compared) -> str:
    """The probability of ranks this far apart if all models were the same; of two models it says nothing."""
    if len(found.models) < 3:
        return ""
    return f", Friedman's p {friedmanchisquare(*found.scores.T).pvalue:.1g}"


def together(ranks: np.ndarray, difference: float) -> list[tuple[float, float]]:
    """The longest stretches of sorted mean ranks that are not told apart, of two models or more."""
    ranks = np.sort(ranks)
    spans = [(low, ranks[ranks <= low + difference][-1]) for low in ranks]
    return [
        (low, high)
        for k, (low, high) in enumerate(spans)
        if high > low and not any(high <= earlier for _, earlier in spans[:k])
    ]


def draw(ax, found: Compared, title: str) -> None:
    """Mean ranks on a line, the better half named on the left, the others on the right, bars below the line."""
    order = np.argsort(found.ranks, kind="stable")
    ranks, count = found.ranks[order], len(order)
    difference = critical_difference(count, len(found.tables))
    bars = together(ranks, difference)
    below, left = 0.45 + 0.3 * len(bars), (count + 1) // 2
    for k, (place, rank) in enumerate(zip(order, ranks, strict=True)):
        height = -(below + 0.5 * (k if k < left else count - 1 - k))
        named(ax, found.models[place], rank, height, count, better=k < left)
    for k, (low, high) in enumerate(bars):
        bar(ax, low - 0.006 * count, high + 0.006 * count, -0.3 * (k + 1))
    scale(ax, count, difference)
    ax.set_ylim(-(below + 0.5 * left), 1.2)
    ax.set_title(f"{title}, {len(found.tables)} tables", loc="left")


def named(ax, model: str, rank: float, height: float, count: int, *, better: bool) -> None:
    """A line from a mean rank to the model's name beside the scale."""
    own, gap = model == OWN, 0.06 * count
    end, side = (1 - gap, -1) if better else (count + gap, 1)
    ax.plot([rank, rank, end], [0, height, height], color=COLOURS[own], linewidth=1.6 if own else 0.9)
    text = f"{model}  {rank:.2f}" if better else f"{rank:.2f}  {model}"
    style = {"color": COLOURS[own], "weight": "bold" if own else "normal"}
    ax.text(end + side * gap / 5, height, text, ha="right" if better else "left", va="center", **style)


def bar(ax, low: float, high: float, height: float) -> None:
    ax.plot([low, high], [height, height], color="#c8553d", linewidth=3, solid_capstyle="butt")


def scale(ax, count: int, difference: float) -> None:
    """The line of ranks, and above it how long a critical difference is."""
    ax.plot([1, count], [0, 0], color="black", linewidth=1)
    for rank in range(1, count + 1):
        ax.plot([rank, rank], [0, 0.12], color="black", linewidth=1)
        ax.text(rank, 0.2, str(rank), ha="center", va="bottom", size=9)
    bar(ax, 1, 1 + difference, 0.95)
    ax.text(1 + 0.02 * count + difference, 0.95, f"critical difference {difference:.2f}", va="center", size=9)
    ax.set_xlim(1 - 0.5 * count, 1.5 * count)  # names have their place beside the line
    ax.axis("off")


def figure(results: dict, folder: Path) -> None:
    """One part for all tables, one for each kind; a kind that nobody has measured is left out."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "pilae"  # the same file from the same numbers
    kinds = {"accuracy or R²": None, "accuracy": True, "R²": False}
    parts = {title: compare(results, classes) for title, classes in kinds.items()}
    parts = {title: found for title, found in parts.items() if found.tables and len(found.models) > 1}
    if not parts:
        return
    whole, axes = plt.subplots(len(parts), 1, figsize=(9, 3.6 * len(parts)), layout="constrained", squeeze=False)
    for ax, (title, found) in zip(axes[:, 0], parts.items(), strict=True):
        draw(ax, found, f"Mean rank by {title}")
    for ending in ("svg", "png"):
        path = folder / f"ranks.{ending}"
        part = path.with_name(f"part-{path.name}")
        whole.savefig(part, dpi=150, metadata={"Date": None} if ending == "svg" else None)
        os.replace(part, path)
    plt.close(whole)


if __name__ == "__main__":
    figure(read(results_of("tables", "peers")), Path(__file__).parent)
