"""The pictures of the pages on the command line, deployment and the maths, which show what leads to what:
python docs/examples/schemes.py [folder]
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

DOCS = Path(__file__).resolve().parents[1]

STYLES = {
    "thing": {"facecolor": "#ffffff", "edgecolor": "#9aa5b1"},
    "step": {"facecolor": "#d9ece4", "edgecolor": "#1b7f5c"},
    "warning": {"facecolor": "#f8e3de", "edgecolor": "#c8553d"},
    "words": {"facecolor": "none", "edgecolor": "none"},
}
"""Of boxes: what there is, what is done with it, what to be careful with, and plain words."""


def canvas(width: float, height: float) -> tuple[Figure, Any]:
    """A figure whose axes are measured in inches."""
    figure = Figure(figsize=(width, height))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(0, height))
    ax.axis("off")
    return figure, ax


def box(ax: Any, x: float, y: float, text: str, kind: str = "thing", width: float = 1.4, height: float = 0.46) -> None:
    """Words in a box, whose middle is at (x, y)."""
    from matplotlib.patches import FancyBboxPatch

    corner = (x - width / 2 + 0.06, y - height / 2 + 0.06)
    style = "round,pad=0.06,rounding_size=0.08"
    ax.add_patch(FancyBboxPatch(corner, width - 0.12, height - 0.12, boxstyle=style, lw=1.2, **STYLES[kind]))
    ax.text(x, y, text, ha="center", va="center", fontsize=9.5, linespacing=1.35)


def arrow(ax: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "#5b6670", "lw": 1.2})


def command_line() -> Figure:
    """A table becomes a model, and the model what the other commands are asked for."""
    figure, ax = canvas(8, 2.7)
    box(ax, 0.75, 1.35, "houses.csv")
    box(ax, 2.3, 1.35, "pilae fit", "step", width=1.1)
    box(ax, 3.75, 1.35, "houses.pilae")
    arrow(ax, (1.47, 1.35), (1.73, 1.35))
    arrow(ax, (2.87, 1.35), (3.03, 1.35))
    outcomes = {
        "pilae predict new.csv": "prices, intervals",
        "pilae evaluate sold.csv": "R², errors",
        "pilae report sold.csv": "a page in HTML",
        "pilae export --onnx": "houses.onnx",
    }
    for k, (command, outcome) in enumerate(outcomes.items()):
        y = 2.32 - 0.645 * k
        box(ax, 5.6, y, command, "step", width=1.7)
        box(ax, 7.32, y, outcome, width=1.26)
        arrow(ax, (4.47, 1.35), (4.73, y))
        arrow(ax, (6.47, y), (6.67, y))
    return figure


def deployment() -> Figure:
    """Three ways out of a process, and what each can still do at the other end."""
    figure, ax = canvas(8, 2.6)
    box(ax, 0.65, 1.15, "model", width=0.9)
    ways = (
        ("model.save", "model.pilae", "step", "pilae.load\nall of it: rows in and out, intervals"),
        ("model.to_onnx", "model.onnx", "step", "any ONNX runtime, no pilae\npredictions, probabilities"),
        (
            "pickle, joblib",
            "a pickle",
            "warning",
            "the same versions of everything\nruns code: only from people you trust",
        ),
    )
    for x, title in ((1.95, "call"), (3.45, "file"), (6.1, "at the other end")):
        ax.text(x, 2.42, title, ha="center", va="center", fontsize=9, color="#5b6670")
    for k, (call, file, kind, end) in enumerate(ways):
        y = 1.95 - 0.78 * k
        box(ax, 1.95, y, call, kind, width=1.3)
        box(ax, 3.45, y, file, width=1.2)
        box(ax, 6.1, y, end, width=3.5, height=0.62)
        arrow(ax, (1.12, 1.15), (1.28, y))
        arrow(ax, (2.62, y), (2.83, y))
        arrow(ax, (4.07, y), (4.33, y))
    return figure


def network() -> Figure:
    """What is summed over rows, what is solved from it, and what leave-one-out decides."""
    figure, ax = canvas(8, 3.1)
    for y, words in ((2.62, "rows"), (1.85, "summed"), (1.15, "solved")):
        ax.text(0.08, y, words, va="center", fontsize=9, color="#5b6670")
    box(ax, 1.0, 2.62, "$X$", width=0.56)
    parts = (
        (2.75, "layer 1:  $H = f(X W_e)$", "$X^T X$,  $H^T H$,  $H^T X$", "$W_d = (H^T H + \\lambda_1 I)^{-1} H^T X$"),
        (5.0, "layer 2 ...", "the same of $H$", "the same"),
        (6.95, "output:  $F W$", "$F^T F$,  $F^T Z$", "$W = (F^T F + \\lambda I)^{-1} F^T Z$"),
    )
    widths = (2.3, 1.3, 1.9)
    for (x, row, summed, solved), width in zip(parts, widths, strict=True):
        box(ax, x, 2.62, row, width=width)
        box(ax, x, 1.85, summed, "step", width=width)
        box(ax, x, 1.15, solved, "step", width=width + 0.1)
        arrow(ax, (x, 2.38), (x, 2.1))
        arrow(ax, (x, 1.61), (x, 1.4))
    for start, end in ((1.3, 1.58), (3.92, 4.33), (5.67, 5.98)):
        arrow(ax, (start, 2.62), (end, 2.62))
    text = "leave-one-out:  $e_i = (z_i - \\hat{z}_i)\\,/\\,(1 - h_i)$   "
    text += "chooses depth, widths, ridges; gives probabilities, intervals"
    box(ax, 4.45, 0.36, text, width=6.95, height=0.5)
    arrow(ax, (6.95, 0.91), (6.95, 0.63))
    return figure


SCHEMES = {"cli": command_line, "deploy": deployment, "maths": network}


def main(folder: Path) -> None:
    matplotlib.rcParams["svg.hashsalt"] = "pilae"  # the same file each time
    folder.mkdir(exist_ok=True)
    for page, scheme in SCHEMES.items():
        scheme().savefig(folder / f"{page}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS)
