"""Tables and the picture of streams, tasks, clients and deletions.

python -m studies.continual.pages    # draws studies/continual/continual.svg from the results
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from studies.continual.drift import FIRST, ROWS
from studies.continual.tasks import SETS
from studies.render import made, named, table
from studies.store import read, results_of

STYLES = {
    "pilae, nothing forgotten": {"color": "#1b7f5c", "ls": ":"},
    "pilae, neurons given, network of all": {"color": "#1b7f5c", "ls": ":"},
    "pilae, no argument": {"color": "#123f30", "ls": "--"},
    "pilae": {"color": "#1b7f5c"},
    "SGDClassifier": {"color": "#9aa5b1"},
    "MLPClassifier": {"color": "#c8553d"},
    "LogisticRegression": {"color": "#555555", "ls": "-."},
    "river: adaptive random forest": {"color": "#3d6fc8"},
    "river": {"color": "#d99a2b"},
}
"""Of lines, by how the name of the model begins: the first that does."""

COLUMNS = 3
"""Panels beside each other."""


def drift() -> str:
    """Accuracy of each model on each stream, and rows a second."""
    results = read(results_of("continual", "drift"))
    cases = results["cases"]
    models = list(dict.fromkeys(model for case in cases.values() for model in case["models"]))
    shown = []
    for model in models:
        found = [case["models"].get(model) for case in cases.values()]
        cells = ["-" if each is None else f"{each['accuracy']:.4f}" for each in found]
        whole = [each for each in found if each is not None]
        mean = sum(each["accuracy"] for each in whole) / len(whole)
        speed = sum(each["rows_per_second"] for each in whole) / len(whole)
        shown.append([model, *cells, f"{mean:.4f}", f"{speed:,.0f}"])
    rows = sorted({case["rows"] for case in cases.values()})
    head = f" | {' | '.join(cases)} | mean | rows a second"
    count = " and ".join(f"{each:,}" for each in rows)
    command = results["command"] + (" --quick" if max(rows) < ROWS and "--quick" not in results["command"] else "")
    return (
        f"{table(head, shown)}\n\nStreams of {count} rows, rows a second of one processor. "
        f"{made(command, results['machine'], cases.values())}"
    )


def tasks() -> str:
    """How far from the joint fit, accuracy after the last task, and that of all rows at once."""
    results = read(results_of("continual", "tasks"))
    cases = results["cases"]
    sets = " | ".join(f"{SETS[name]}, {case['rows']:,} rows" for name, case in cases.items())
    parts = [
        table(f"the same network filled by | {sets}", _rows(cases, "same", lambda found: f"{found['apart']:.0e}")),
        "Largest difference of outputs from those of the joint fit (of the deletion: from a model never given those "
        "rows).",
        table(f"two classes at a time | {sets}", _rows(cases, "tasks", lambda found: f"{found['accuracy'][-1]:.4f}")),
        "Test accuracy after the last task. Peers are standardised with all rows in sight.",
        table(f"all rows at once | {sets}", _rows(cases, "all", lambda found: f"{found['accuracy']:.4f}")),
        "Test accuracy. In brackets processor seconds, and what is kept between tasks. "
        + made(results["command"], results["machine"], cases.values()),
    ]
    return "\n\n".join(parts)


def _rows(cases: dict, part: str, figure: Callable[[dict], str]) -> list[list[str]]:
    """What was measured of each case under the same name, with what it took."""
    names = dict.fromkeys(name for case in cases.values() for name in case[part])
    return [[name, *(_cell(case[part].get(name), figure) for case in cases.values())] for name in names]


def _cell(found: dict | None, figure: Callable[[dict], str]) -> str:
    if found is None:
        return "-"
    took = [f"{found['seconds']:,.1f} s"] if "seconds" in found else []
    took += [f"{found['megabytes']:,.1f} MB"] if "megabytes" in found else []
    return figure(found) + (f" ({', '.join(took)})" if took else "")


PAGES = {"studies/README.md": named(drift, tasks)}


def draw(path: Path) -> None:
    """Streams above, tasks below, three in a row."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "pilae"
    streams = read(results_of("continual", "drift"))["cases"]
    sets = read(results_of("continual", "tasks"))["cases"]
    above, below = (-(-len(cases) // COLUMNS) for cases in (streams, sets))
    figure = plt.figure(figsize=(3.6 * COLUMNS, 2.7 * (above + below) + 1), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(above, below))
    for part, cases, rows, one in ((upper, streams, above, _draw_stream), (lower, sets, below, _draw_tasks)):
        axes = part.subplots(rows, COLUMNS, squeeze=False).ravel()
        for ax, (name, case) in zip(axes, cases.items(), strict=False):
            one(ax, name, case)
            ax.spines[["top", "right"]].set_visible(False)
        for ax in axes[len(cases) :]:
            ax.remove()
        lines = {line.get_label(): line for ax in axes[: len(cases)] for line in ax.lines}
        part.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(path, metadata={"Date": None})


def _draw_stream(ax: Any, name: str, case: dict) -> None:
    for model, found in case["models"].items():
        count = len(found["curve"])
        middles = [(FIRST + (k + 0.5) * (case["rows"] - FIRST) / count) / 1000 for k in range(count)]
        ax.plot(middles, found["curve"], label=model, **_style(model))
    ax.set(title=name, xlabel="thousand rows", ylabel="accuracy before learning")


def _draw_tasks(ax: Any, name: str, case: dict) -> None:
    for model, found in case["tasks"].items():
        met = [min(2 * k, case["classes"]) for k in range(1, len(found["accuracy"]) + 1)]
        ax.plot(met, found["accuracy"], marker=".", label=model, **_style(model))
    for model in ("pilae, no argument", "LogisticRegression"):
        if model in case["all"]:
            ax.axhline(case["all"][model]["accuracy"], label=f"{model}, all at once", lw=1, **_style(model))
    ax.set(title=SETS[name], xlabel="classes met", ylabel="accuracy on these", ylim=(0, 1))


def _style(model: str) -> dict[str, str]:
    return next(style for name, style in STYLES.items() if model.startswith(name))


if __name__ == "__main__":
    draw(Path(__file__).parent / "continual.svg")
