"""Figure 2: training times of back-propagation and PILAE on a logarithmic scale, from the results of Table III."""

import os
from statistics import mean

from studies.data import TITLES
from studies.paper.setting import HERE, QUICK, RUN
from studies.store import read

COLOURS = {"PILAE": "#1b7f5c", "back-propagation, greedy": "#c8553d", "back-propagation, end to end": "#e0a458"}


def times(cell: dict) -> dict[tuple[str, str], list[float]]:
    """(method, head) to seconds of every seed."""
    found: dict[tuple[str, str], list[float]] = {}
    for head in cell["pilae"]:
        found["PILAE", head] = [cell["pilae"][head]["seconds"]]
        runs = cell["greedy"].values()
        found["back-propagation, greedy", head] = [run["seconds"] + run["heads"][head]["seconds"] for run in runs]
        found["back-propagation, end to end", head] = [run["seconds"] for run in cell["end_to_end"][head].values()]
    return found


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "pilae"  # the same file from the same numbers
    cells = {name: cell for name, cell in read(RUN.results / "table3.json")["cells"].items() if "missing" not in cell}
    if not cells:
        return
    figure, axes = plt.subplots(1, len(cells), figsize=(4.2 * len(cells), 3.6), sharey=True, layout="constrained")
    for ax, (name, cell) in zip([axes] if len(cells) == 1 else axes, cells.items(), strict=True):
        heads = list(cell["pilae"])
        for k, (method, colour) in enumerate(COLOURS.items()):
            for j, head in enumerate(heads):
                seconds = times(cell)[method, head]
                x, value = j + 0.28 * (k - 1), mean(seconds)
                ax.bar(x, value, 0.26, color=colour, label=method if j == 0 else None)
                ax.plot([x] * len(seconds), seconds, ".", color="black", markersize=3)
                ax.annotate(f"{value:.3g}", (x, max(seconds)), (0, 3), textcoords="offset points", ha="center", size=8)
        ax.set_yscale("log")
        ax.set_xticks(range(len(heads)), heads)
        ax.set_title(TITLES.get(name, name))
        ax.spines[["top", "right"]].set_visible(False)
    first = figure.axes[0]
    first.set_ylabel("training time, seconds (log scale)")
    first.set_ylim(top=first.get_ylim()[1] * 2)
    figure.legend(*first.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    for ending in ("svg", "png"):
        path = HERE / f"figure2{'-quick' if QUICK else ''}.{ending}"
        whole = path.with_name(f"part-{path.name}")
        figure.savefig(whole, dpi=150, metadata={"Date": None} if ending == "svg" else None)
        os.replace(whole, path)
    plt.close(figure)


if __name__ == "__main__":
    main()
