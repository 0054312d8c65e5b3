"""Pictures of speed: where the seconds go, a GPU beside two cores, seconds and memory against rows."""

from typing import Any

from studies.render import Picture
from studies.speed.pages import results
from studies.store import results_of

OWN, OTHER = "#1b7f5c", "#9aa5b1"

KINDS = {
    "Gram matrices": "#123f30",
    "products of neurons": "#1b7f5c",
    "other products": "#7cc4a8",
    "factors and substitution": "#3d6fc8",
    "leave-one-out": "#9db8e6",
    "activations": "#c8553d",
    "centring, scaling, adding up": "#d99a2b",
    "keys of rows": "#efd29a",
    "the rest": "#c3cad1",
}
"""In this order from the left: products are green."""


def plain(ax: Any, *sides: str) -> None:
    ax.spines[list(sides or ("top", "right"))].set_visible(False)


def seconds(value: float) -> str:
    return f"{value:,.0f} s" if value >= 10 else f"{value:.1f} s" if value >= 1 else f"{value:.2f} s"


def profiles(figure: Any) -> None:
    """One bar for each fit, cut by what is done."""
    cases = results("profiles")["cases"]
    ax = figure.subplots()
    for k, case in enumerate(cases.values()):
        left, whole = 0.0, sum(case["kinds"].values())
        for kind, colour in KINDS.items():
            share = 100 * case["kinds"][kind] / whole
            ax.barh(k, share, left=left, color=colour, height=0.62, label=kind if not k else None)
            left += share
        ax.text(101.5, k, seconds(case["seconds"]), va="center")
    names = [name.replace(", ", ",\n", 1).replace("10^6", "10⁶") for name in cases]
    ax.set(yticks=range(len(cases)), yticklabels=names, xlim=(0, 100), xlabel="per cent of a fit's seconds")
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    plain(ax, "top", "right", "left")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)


def gpu(figure: Any) -> None:
    """The same fits of MNIST on two cores and on a card."""
    card, cores = results("gpu"), results("products")["cases"]
    fixed, free = cores["MNIST, paper's network, ridges given"], cores["MNIST, no argument"]
    own = card["paper's network, head 4000"]
    bars = [
        ("two cores", fixed["seconds"], OTHER),
        ("GPU, rows in NumPy", own["from NumPy"]["milliseconds"] / 1000, OWN),
        ("GPU, rows on the card", own["on the card"]["milliseconds"] / 1000, OWN),
        ("two cores", free["seconds"], OTHER),
        ("GPU, rows in NumPy", card["no argument, mnist"]["seconds"], OWN),
    ]
    ax, places = figure.subplots(), [1.0, 2.0, 3.0, 5.0, 6.0]
    for place, (_, took, colour) in zip(places, bars, strict=True):
        ax.barh(place, took, color=colour, height=0.7)
        ax.text(took * 1.1, place, seconds(took), va="center")
    for place, title in ((0.3, "the paper's network, head of 4,000 neurons"), (4.3, "no argument: search included")):
        ax.text(0.055, place, title, va="center", weight="bold")
    ax.set(xscale="log", xlim=(0.05, 200), ylim=(6.5, -0.1), xlabel="seconds of a fit to MNIST, 60,000 rows")
    ax.set(yticks=places, yticklabels=[name for name, _, _ in bars])
    ax.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    ax.tick_params(axis="y", length=0)
    plain(ax, "top", "right", "left")


def scale(figure: Any) -> None:
    """Rows grow, memory does not."""
    cases = [case for case in results("scale")["cases"].values() if "rows" in case]
    rows = [case["rows"] for case in cases]
    left, right = figure.subplots(1, 2)
    left.plot(rows, [row * 400 / 1e6 for row in rows], "o-", color=OTHER)  # 100 columns of four bytes
    left.plot(rows, [case["anonymous_megabytes_above_start"] for case in cases], "o-", color=OWN)
    left.text(6e6, 6000, "the rows", ha="right", color="#5b6670")
    left.text(rows[-1], 100, "what the fit holds", ha="right", color=OWN)
    left.set(title="megabytes", ylim=(20, 40_000), yscale="log")
    left.set_yticks([100, 1000, 10_000], ["100", "1,000", "10,000"])
    right.plot(rows, [case["seconds"] for case in cases], "o-", color=OWN)
    right.set(title="seconds on two cores", ylim=(0.3, 500), yscale="log")
    right.set_yticks([1, 10, 100], ["1", "10", "100"])
    for ax in (left, right):
        ax.set(xscale="log", xlabel="rows of 100 columns", xlim=(7e4, 8e7))
        ax.set_xticks([1e5, 1e6, 1e7], ["100,000", "1 million", "10 million"])
        ax.minorticks_off()
        ax.grid(axis="y", color="#e4e8eb")
        plain(ax)


PICTURES = {
    "studies/speed/profiles.svg": Picture(profiles, (7, 4.2), (results_of("speed", "profiles"),)),
    "studies/speed/gpu.svg": Picture(gpu, (7, 3.1), (results_of("speed", "gpu"), results_of("speed", "products"))),
    "studies/speed/scale.svg": Picture(scale, (7, 2.8), (results_of("speed", "scale"),)),
}
