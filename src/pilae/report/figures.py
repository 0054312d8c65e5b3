"""From a summary to figures: SVG text that takes the page's colours, light or dark."""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._base.extras import extra
from ..plot.displays import (
    COLOUR,
    FAINT,
    OTHER,
    CalibrationDisplay,
    DepthDisplay,
    ImportancesDisplay,
    SpectrumDisplay,
    draw_width_path,
    tidy,
)
from .summary import short_names
from .tested import FIFTHS_COVERAGE
from .verdict import accuracy_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

TEXT = "#123456"
"""Stands for the page's text colour until the figure is written."""

OF_THE_PAGE = {
    TEXT: "currentColor",
    COLOUR: f"var(--accent, {COLOUR})",
    OTHER: f"var(--other, {OTHER})",
    FAINT: f"var(--faint, {FAINT})",
}
"""Colours that are lighter on a dark page."""


LINES = (COLOUR, OTHER, "#3b6fb6", "#b58900", FAINT)
"""Colours of several classes."""

LEGEND_LETTERS = 56
"""Of all names in a line of a legend, each with the space of some for its sign."""

FEW_CLASSES = 4
"""Their matrix is drawn as high as other figures."""

STYLE = {
    "svg.fonttype": "none",  # text stays text: small, searchable, in the page's font
    "svg.hashsalt": "pilae",
    "font.family": "sans-serif",
    "font.size": 10,
    "savefig.transparent": True,
    "path.simplify_threshold": 0.3,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "legend.labelcolor"), TEXT),
    **dict.fromkeys(("xtick.color", "ytick.color"), TEXT),
}


def figures(summary: dict[str, Any]) -> dict[str, str]:
    """Name to SVG of every figure that the summary has numbers for."""
    drawn = _drawn(_drawings(summary), summary)
    kept = summary.get("reconstruction") or {}
    if kept.get("pictures"):
        drawn["reconstruction"] = drawn_images([kept["originals"], *kept["pictures"]])
    return drawn


def figures_of_test(summary: dict[str, Any]) -> dict[str, str]:
    """Those of how good it is, and where it is wrong."""
    return _drawn(_of_tested(summary.get("test") or {}), summary)


def _drawn(drawings: Iterable[tuple[str, Callable[..., object]]], summary: dict[str, Any]) -> dict[str, str]:
    with extra("matplotlib", "report", "A report").rc_context(STYLE):
        return {name: _svg(draw, *_size(name, summary)) for name, draw in drawings}


def _size(name: str, summary: dict[str, Any]) -> tuple[float, float]:
    """Width and height in inches."""
    if name.startswith("curve"):
        return 3.2, 2.4
    if name == "shuffled":
        return 5.2, max(1.6, 0.9 + 0.24 * len(summary["shuffled"]))
    many = name == "confusion" and len(summary["test"]["classes"]) > FEW_CLASSES
    return 5.2, 4.6 if many else 3.2


def _drawings(summary: dict[str, Any]) -> Iterator[tuple[str, Callable[..., object]]]:
    """What there is to draw: name, and what draws it on an axis."""
    yield from _of_columns(summary)
    yield from _of_tested(summary.get("test") or {})
    path, spectrum, search = summary.get("width_path"), summary.get("spectrum"), summary.get("search", [])
    search = [row for row in search if row["loss"] is not None]
    if path is not None:
        yield "width_path", partial(_width_path, path)
    if len({row["depth"] for row in search}) > 1:
        yield "depth", DepthDisplay.computed(search).plot
    if spectrum is not None:
        yield "spectrum", SpectrumDisplay(_numbers(spectrum["values"]), spectrum["cutoff"], spectrum["rank"]).plot


def _of_columns(summary: dict[str, Any]) -> Iterator[tuple[str, Callable[..., object]]]:
    columns, pictures = summary.get("importances"), (summary.get("reconstruction") or {}).get("pictures")
    if "shuffled" in summary:
        score = "accuracy" if "classes" in summary["training"] else "R²"
        yield "shuffled", partial(_shuffled, summary["shuffled"], score)
    elif columns is not None and not pictures:  # pixels have no names
        names = [each["column"] for each in columns]
        yield "importances", ImportancesDisplay.computed(names, _numbers([each["share"] for each in columns])).plot
    for k, curve in enumerate(summary.get("curves", [])):
        answer = "mean probability" if "classes" in summary["training"] else "mean prediction"
        yield f"curve{k}", partial(_curve, curve, answer)


def _of_tested(test: dict[str, Any]) -> Iterator[tuple[str, Callable[..., object]]]:
    if "points" in test:
        points = _numbers(test["points"])
        yield "predicted", partial(_predicted, points)
        yield "residuals", partial(_residuals, points)
    if "coverage" in test:
        yield "coverage", partial(_coverage, _numbers(test["coverage"]))
    if "fifths" in test:
        yield "fifths", partial(_fifths, test["fifths"])
    if test.get("confusion") is not None and len(test["classes"]) > 1:
        names = [each["name"] for each in test["classes"]]
        yield "confusion", partial(_confusion, np.asarray(test["confusion"]), names)
    if test.get("roc"):
        yield "roc", partial(_roc, test["roc"])
    if "calibration" in test:
        bins: dict[str, Any] = {name: _numbers(values) for name, values in test["calibration"].items()}
        yield "calibration", CalibrationDisplay(**bins, weight=np.empty(0)).plot


def _numbers(values: Sequence | np.ndarray) -> np.ndarray:
    """Numbers of a summary, in which those that JSON does not have are None or text."""
    return np.asarray(values, dtype=float)


def _svg(draw: Callable[..., object], width: float, height: float) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    ax = figure.subplots()
    draw(ax=ax)
    _place_legend(ax)
    file = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # text stays text, and the browser has the font
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return _of_the_page(file.getvalue())


def _place_legend(ax: Axes) -> None:
    """Above the figure, where it covers nothing."""
    if ax.get_legend() is None:
        return
    handles, labels = ax.get_legend_handles_labels()
    columns = max(1, min(len(labels), LEGEND_LETTERS // (max(map(len, labels)) + 6)))
    ax.legend(handles, labels, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns)


def _thousands(*axes: Axis) -> None:
    """Large numbers with their thousands apart, and never as multiples of a power that stands elsewhere."""
    from matplotlib.ticker import FuncFormatter

    for axis in axes:
        if 1e4 <= np.abs(axis.get_view_interval()).max() < 1e12:
            axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}".replace("-", "−")))


def _of_the_page(svg: str) -> str:
    """Without prologue and fixed size, and with the page's colours."""
    svg = svg[svg.index("<svg") :]
    for size in ("height", "width"):
        svg = re.sub(rf'(<svg[^>]*?) {size}="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r'(?<=style=")[^"]*', _coloured, svg)


def _coloured(style: re.Match[str]) -> str:
    return re.sub("|".join(OF_THE_PAGE), lambda colour: OF_THE_PAGE[colour[0]], style[0])


def _width_path(path: dict[str, Any], ax: Axes) -> None:
    errors = {name: _numbers(values) for name, values in path["errors"].items()}
    spread = None if path["standard_errors"] is None else _numbers(path["standard_errors"])
    draw_width_path(ax, np.asarray(path["columns"]), errors, f"{path['ridge']:.1e}", spread, path["chosen"])
    others = [line for line in ax.lines if line.get_color() == FAINT]
    for k, line in enumerate(others):  # which is which says nothing
        line.set_label("_" if k else "other ridges")
    tidy(ax)


def _confusion(matrix: np.ndarray, names: list[str], ax: Axes) -> None:
    share = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    colour = [int(COLOUR[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    ax.imshow(np.stack([*(np.full_like(share, c) for c in colour), share], axis=2))  # the page shines through
    short = short_names(names, 14)
    labels = [short[name].replace("$", r"\$") for name in names]  # matplotlib would read dollars as mathematics
    ax.set_xticks(range(len(names)), labels, rotation=90 if max(map(len, short.values())) > 3 else 0)
    ax.set_yticks(range(len(names)), labels)
    ax.set(xlabel="predicted", ylabel="true")
    if len(names) <= 20:
        for i, j in np.argwhere(matrix):
            shade = "white" if share[i, j] > 0.5 else TEXT
            ax.text(j, i, str(matrix[i, j]), ha="center", va="center", color=shade, size=10 - len(names) // 4)


def line_colours(count: int) -> list[str]:
    """Of lines that are named beside the figure, as a page has them."""
    return [OF_THE_PAGE.get(colour, colour) for colour in LINES[:count]]


def _words(name: str, most: int = 24) -> str:
    """A name that fits, and that matplotlib does not read as mathematics."""
    return short_names([name], most)[name].replace("$", r"\$")


def _shuffled(columns: list[dict[str, Any]], score: str, ax: Axes) -> None:
    places = np.arange(len(columns))[::-1]
    losses, spread = (_numbers([each[key] for each in columns]) for key in ("loss", "spread"))
    ax.barh(places, losses, xerr=spread, color=COLOUR, ecolor=FAINT, height=0.7)
    ax.set_yticks(places, [_words(each["column"]) for each in columns])
    ax.axvline(0, color=FAINT, lw=1)
    ax.set(xlabel=f"{score} lost when the column is shuffled")
    ax.locator_params(axis="x", nbins=5)
    tidy(ax)


def _curve(curve: dict[str, Any], answer: str, ax: Axes) -> None:
    values, places = curve["values"], np.arange(len(curve["values"]))
    for means, colour in zip(curve["lines"].values(), LINES, strict=False):
        if curve["numeric"]:
            ax.plot(_numbers(values), _numbers(means), color=colour)
        else:  # names have more room at the side
            ax.plot(_numbers(means), places, "o", color=colour)
    along: Literal["x", "y"] = "y" if curve["numeric"] else "x"
    ax.locator_params(axis=along, nbins=5 if curve["numeric"] else 3)
    ax.ticklabel_format(axis=along, useOffset=False)
    if curve["numeric"]:
        ax.locator_params(axis="x", nbins=4)
        ax.set_ylabel(answer)
    else:
        ax.set_yticks(places, [_words(word, 16) for word in values])
        ax.set_ylim(len(places) - 0.5, -0.5)
        ax.set_xlabel(answer)
    _thousands(ax.yaxis if curve["numeric"] else ax.xaxis)
    ax.set_title(_words(curve["column"], 32), size=10)
    tidy(ax)


def _predicted(points: np.ndarray, ax: Axes) -> None:
    predicted, true = points[:, 0], points.sum(axis=1)
    ends = [min(predicted.min(), true.min()), max(predicted.max(), true.max())]
    ax.plot(ends, ends, color=FAINT, lw=1)
    ax.plot(predicted, true, ".", color=COLOUR, alpha=0.7, markersize=5)
    ax.set(xlabel="predicted", ylabel="true")
    ax.locator_params(nbins=6)
    _thousands(ax.xaxis, ax.yaxis)
    tidy(ax)


def _fifths(fifths: list[dict[str, Any]], ax: Axes) -> None:
    found, rows = (_numbers([each[key] for each in fifths]) for key in ("coverage", "rows"))
    places = np.arange(len(fifths))
    ax.axhline(FIFTHS_COVERAGE, color=FAINT, lw=1, label="as asked")
    ends = np.array([accuracy_interval(share, int(n)) for share, n in zip(found, rows, strict=True)]).T
    errors = np.maximum(np.stack([found - ends[0], ends[1] - found]), 0)
    label = "found, with its 95% interval"
    ax.errorbar(places, found, yerr=errors, fmt="o", color=OTHER, ecolor=FAINT, label=label, clip_on=False)
    ax.set_xticks(places, ["lowest", *[""] * (len(fifths) - 2), "highest"])
    ax.set(xlabel="fifth of the predictions", ylabel="share of targets inside", ylim=(_below(ends[0], 0.8), 1))
    tidy(ax)


def _roc(curves: list[dict[str, Any]], ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], color=FAINT, lw=1)
    for curve, colour in zip(curves, LINES, strict=False):
        label = f"{_words(curve['name'], 16)}: area {curve['area']:.3f}"
        ax.plot(_numbers(curve["wrongly"]), _numbers(curve["rightly"]), color=colour, label=label)
    ax.set(xlabel="share of other rows taken for it", ylabel="share of its rows found")
    tidy(ax)


def _residuals(points: np.ndarray, ax: Axes) -> None:
    ax.axhline(0, color=FAINT, lw=1)
    ax.plot(points[:, 0], points[:, 1], ".", color=COLOUR, alpha=0.7, markersize=5)
    ax.set(xlabel="predicted", ylabel="true minus predicted")
    ax.locator_params(nbins=6)
    _thousands(ax.xaxis, ax.yaxis)
    tidy(ax)


def _below(shares: np.ndarray, usual: float) -> float:
    """Where an axis of shares that ends at 1 begins: at a tenth below all of them."""
    return min(usual, float(np.floor(10 * shares.min()) / 10))


def _coverage(pairs: np.ndarray, ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], color=FAINT, lw=1, label="as asked")
    ax.plot(pairs[:, 0], pairs[:, 1], "o-", color=OTHER, label="share of test targets inside", clip_on=False)
    low = _below(pairs[:, 1], 0.4)
    ax.set(xlabel="coverage asked for", ylabel="coverage found", xlim=(0.4, 1), ylim=(low, 1))
    tidy(ax)


def drawn_images(lines: Sequence[Sequence | np.ndarray], ends: Sequence[float] | None = None) -> str:
    """Lines of images one below the other, the first being the originals, as one small PNG inside an SVG (pixels stay
    sharp); between them, and where an image has no numbers, the page shines through. `ends`: what is black and what is
    white, by default the least and the most of the first line."""
    import matplotlib.image

    rows = [_numbers(images) for images in lines]
    low, high = (np.nanmin(rows[0]), np.nanmax(rows[0])) if ends is None else ends
    strips, gap = [], 2
    for images in rows:
        images = np.clip((images - low) / (high - low if high > low else 1.0), 0, 1)
        if images.ndim == 3:
            images = np.repeat(images[..., None], 3, axis=3)
        there = 1.0 - np.isnan(images).all(axis=3, keepdims=True)  # opaque, unlike what is around
        images = np.concatenate([np.nan_to_num(images), there], axis=3)
        padded = np.pad(images, ((0, 0), (gap, gap), (gap, gap), (0, 0)))
        strips.append(np.concatenate(list(padded), axis=1))
    sheet = np.concatenate(strips, axis=0)
    file = io.BytesIO()
    matplotlib.image.imsave(file, sheet, format="png")
    height, width = sheet.shape[:2]
    data = base64.b64encode(file.getvalue()).decode()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        f'<image width="{width}" height="{height}" style="image-rendering:pixelated" '
        f'href="data:image/png;base64,{data}"/></svg>'
    )
