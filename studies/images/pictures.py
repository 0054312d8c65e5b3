"""The picture of images: how accurate each way to read them is."""

from typing import Any

from studies.data import TITLES
from studies.render import Picture
from studies.store import read, results_of

OWN, OTHER, MIDDLE = "#1b7f5c", "#9aa5b1", "#3d6fc8"

USED = (results_of("images", "angles"), results_of("images", "patches"), results_of("speed", "paper_network"))


def accuracies() -> dict[str, tuple[dict[str, float], dict[str, Any]]]:
    """By the way images are read: test accuracy of each set, and how it is drawn."""
    angles, patches, rows = map(read, USED)

    def of(cases: dict) -> dict[str, float]:
        return {name: case["test_accuracy"] for name, case in cases.items()}

    free = {name.split(",")[0]: case for name, case in rows["cases"].items() if "no argument" in name}
    gpu = {"mfc": "none", "ls": ""}
    return {
        "rows: PILAEClassifier, two cores": (of(free), {"marker": "s", "color": OTHER, "ls": ""}),
        "patches: ConvPILAE, two cores": (of(patches["cpu"]), {"marker": "D", "color": MIDDLE, "ls": ""}),
        "patches, one GPU": (of(patches["cuda"]), {"marker": "D", "color": MIDDLE} | gpu),
        "PILAEImageClassifier, two cores": (of(angles["cpu"]), {"marker": "o", "color": OWN, "ls": ""}),
        "PILAEImageClassifier, one GPU": (of(angles["cuda"]), {"marker": "o", "color": OWN} | gpu),
    }


def ways(figure: Any) -> None:
    """One line for each set of images, one mark for each way to read them."""
    found = accuracies()
    sets = list(dict.fromkeys(name for figures, _ in found.values() for name in figures))
    ax = figure.subplots()
    for k, name in enumerate(sets):
        marks = [figures[name] for figures, _ in found.values() if name in figures]
        ax.plot([min(marks), max(marks)], [k, k], color="#d5dade", lw=2, zorder=0)
    for label, (figures, style) in found.items():
        ax.plot(list(figures.values()), [sets.index(name) for name in figures], ms=8, label=label, **style)
    ax.set(yticks=range(len(sets)), yticklabels=[TITLES[name] for name in sets], xlabel="test accuracy")
    ax.set_ylim(len(sets) - 0.5, -0.5)
    ax.grid(axis="x", color="#e4e8eb")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)


PICTURES = {"studies/images/ways.svg": Picture(ways, (7, 3.2), USED)}
