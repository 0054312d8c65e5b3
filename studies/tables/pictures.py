"""Pictures of tables: mixed ones beside skrub's pipelines, and what goes beyond the paper."""

from typing import Any

from studies.render import Picture
from studies.store import results_of
from studies.tables.mixed_pages import BOOSTING, LINEAR, gains
from studies.tables.pages import beyond

OWN, OTHER, WORSE = "#1b7f5c", "#9aa5b1", "#c8553d"

MOST = 10.0
"""Points that a picture has room for; what lies further is written beside its mark."""


def mixed(figure: Any) -> None:
    """How many points pilae lies above each of the others, table by table."""
    boosting, linear = ({name: 100 * each for name, each in gains(other).items()} for other in (BOOSTING, LINEAR))
    names = sorted(boosting, key=boosting.__getitem__)
    ax = figure.subplots()
    for label, found, few, style in (
        ("above skrub's boosting", boosting, [name for name in names if boosting[name] >= 0], {"color": OWN}),
        ("below it", boosting, [name for name in names if boosting[name] < 0], {"color": WORSE}),
        ("above or below skrub's linear model", linear, names, {"color": OTHER, "mfc": "white", "zorder": 1}),
    ):
        places = [max(min(found[name], MOST), -MOST) for name in few]
        ax.plot(places, [names.index(name) for name in few], marker="o", ms=6, ls="", label=label, **style)
    for k, name in enumerate(names):
        far = [f"{found[name]:+.0f}" for found in (boosting, linear) if abs(found[name]) > MOST]
        ax.text(MOST + 0.5, k, " and ".join(far), va="center", fontsize=8)
    ax.axvline(0, color="#5b6670", lw=1, zorder=0)
    ax.set(yticks=range(len(names)), yticklabels=names, xlim=(-MOST - 0.5, MOST + 0.5), ylim=(-0.7, len(names) - 0.3))
    ax.set_xlabel("points of accuracy or R² that pilae is better by")
    ax.set_xticks([-10, -5, 0, 5, 10])
    ax.grid(axis="x", color="#e4e8eb")
    ax.tick_params(axis="y", length=0, labelsize=9)
    ax.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)


def _colour(gain: float) -> str:
    return OWN if gain >= 0 else WORSE


def parts(figure: Any) -> None:
    """What each of the parts beyond the paper gives, one panel each."""
    first, second, third = figure.subplots(1, 3, width_ratios=(1.25, 1, 1))
    sets = beyond("residual")[0]["sets"]
    gained = sorted(100 * (each["chosen"] - each["plain"]) for each in sets.values())
    first.barh(range(len(gained)), gained, color=[_colour(each) for each in gained])
    first.set(title="residual networks", yticks=[], ylabel=f"{len(gained)} tables", xlabel="points gained")
    [cases] = beyond("sparse")[0].values()
    shares = [100 * case["density_of_all"] for case in cases]
    accuracies = [100 * case["test_accuracy"] for case in cases]
    second.plot(shares, accuracies, "o-", color=OWN)
    second.set(title="sparse decoders", xlabel="% of weights left", ylabel="% right, MNIST")
    second.set(xlim=(0, 105), ylim=(96.5, 98.5))
    mean = beyond("robust")[0]["mean"]
    bars = {
        "squared\nerror": (mean["squared"], WORSE),
        "robust": (mean["robust"], OWN),
        "no wrong\ntargets": (mean["clean"], OTHER),
    }
    for k, (height, colour) in enumerate(bars.values()):
        third.bar(k, height, color=colour, width=0.65)
        third.text(k, height + 0.06, f"{height:.2f}", ha="center")
    third.set(title="wrong targets", ylabel="error on clean rows", xticks=range(len(bars)), ylim=(0, 3.5))
    third.set_xticklabels(list(bars), fontsize=9)
    for ax in (first, second, third):
        ax.spines[["top", "right"]].set_visible(False)


PICTURES = {
    "studies/tables/mixed.svg": Picture(mixed, (7, 6.2), (results_of("tables", "mixed"),)),
    "studies/tables/beyond.svg": Picture(parts, (8, 2.9), (results_of("tables", "beyond"),)),
}
