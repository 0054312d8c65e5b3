"""Tables and the picture of streams, tasks, clients and deletions.

python -m studies.continual.pages    # draws studies/continual/continual.svg from the results
"""

from pathlib import Path

from studies.continual.drift import ROWS
from studies.continual.tasks import QUICK_ROWS, SETS
from studies.render import made, named, table
from studies.store import read, results_of

COLOURS = {"pilae": "#1b7f5c", "SGDClassifier": "#9aa5b1", "MLPClassifier": "#c8553d", "river": "#3d6fc8"}


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
    return (
        f"{table(head, shown)}\n\nStreams of {count} rows, rows a second of one processor. "
        f"{made(_command(results, ROWS), results['machine'], cases.values())}"
    )


def _command(results: dict, rows: int) -> str:
    """What made them: fewer rows are the quick mode's."""
    quick = max(case["rows"] for case in results["cases"].values()) < rows
    return results["command"] + (" --quick" if quick else "")


def tasks() -> str:
    """How far from the joint fit, and accuracy after the last task."""
    results = read(results_of("continual", "tasks"))
    cases = results["cases"]
    ways = list(next(iter(cases.values()))["apart"])
    names = [f"{SETS[name]}, {case['rows']:,} rows" for name, case in cases.items()]
    far = [
        [way, *(f"{case['apart'][way]:.0e} ({case['seconds'][way]:.1f} s)" for case in cases.values())] for way in ways
    ]
    curves = list(next(iter(cases.values()))["after_each_task"])
    last = [[name, *(f"{case['after_each_task'][name][-1]:.4f}" for case in cases.values())] for name in curves]
    others = list(next(iter(cases.values()))["accuracy"])
    last += [
        [f"{name} fit" if name == "joint" else name, *(f"{case['accuracy'][name]:.4f}" for case in cases.values())]
        for name in others
    ]
    columns = " | ".join(names)
    return (
        f"{table(f'the same network filled by | {columns}', far)}\n\nLargest difference of outputs from those of the "
        "joint fit (of the deletion: from a model never given those rows), and processor seconds.\n\n"
        f"{table(f'after five tasks of two classes | {columns}', last)}\n\n"
        f"Test accuracy. {made(_command(results, QUICK_ROWS + 1), results['machine'], cases.values())}"
    )


PAGES = {"studies/README.md": named(drift, tasks)}


def draw(path: Path) -> None:
    """Streams above, tasks below."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "pilae"
    streams = read(results_of("continual", "drift"))["cases"]
    sets = read(results_of("continual", "tasks"))["cases"]
    columns = max(len(streams), len(sets), 1)
    figure, axes = plt.subplots(2, columns, figsize=(3.2 * columns, 5.6), layout="constrained", squeeze=False)
    for ax, (name, case) in zip(axes[0], streams.items(), strict=False):
        for model, found in case["models"].items():
            ax.plot(found["curve"], label=model, color=_colour(model), ls=":" if "nothing" in model else "-")
        ax.set(title=name, xlabel="the stream", ylabel="accuracy before learning" if ax is axes[0][0] else "")
    for ax, (name, case) in zip(axes[1], sets.items(), strict=False):
        for model, curve in case["after_each_task"].items():
            style = ":" if "first" in model else "-"
            ax.plot([2, 4, 6, 8, 10], curve, marker="o", ls=style, label=model, color=_colour(model))
        ax.set(title=SETS[name], xlabel="classes met", ylabel="accuracy on these", ylim=(0, 1))
    for row, used in ((axes[0], len(streams)), (axes[1], len(sets))):
        for ax in row[used:]:
            ax.axis("off")
        for ax in row[:used]:
            ax.spines[["top", "right"]].set_visible(False)
        row[0].legend(frameon=False, fontsize=6)
    figure.savefig(path, metadata={"Date": None})


def _colour(model: str) -> str:
    return next(colour for name, colour in COLOURS.items() if model.startswith(name))


if __name__ == "__main__":
    draw(Path(__file__).parent / "continual.svg")
