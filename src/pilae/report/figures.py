"""From a summary to figures: SVG text that takes the page's colours, light or dark."""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._base.extras import extra
from ..plot import COLOUR, FAINT, OTHER, CalibrationDisplay, DepthDisplay, SpectrumDisplay, draw_width_path
from .summary import short_names

TEXT = "#123456"
"""Stands for the page's text colour until the figure is written."""

OF_THE_PAGE = {
    TEXT: "currentColor",
    COLOUR: f"var(--accent, {COLOUR})",
    OTHER: f"var(--other, {OTHER})",
    FAINT: f"var(--faint, {FAINT})",
}
"""Colours that are lighter on a dark page."""


def figures(summary: dict[str, Any]) -> dict[str, str]:
    """Name to SVG of every figure that the summary has numbers for."""
    found: dict[str, str] = {}
    with _style():
        path = summary.get("width_path")
        if path is not None:
            found["width_path"] = _drawn(lambda ax: _width_path(path, ax))
        search = summary.get("search", [])
        if len({row["depth"] for row in search}) > 1:
            found["depth"] = _drawn(lambda ax: DepthDisplay.computed(search).plot(ax=ax))
        spectrum = summary.get("spectrum")
        if spectrum is not None:
            values = _numbers(spectrum["values"])
            display = SpectrumDisplay(values, spectrum["cutoff"], spectrum["rank"])
            found["spectrum"] = _drawn(lambda ax: display.plot(ax=ax))
        pictures = summary.get("reconstruction") or {}
        if pictures.get("pictures"):
            found["reconstruction"] = drawn_images([pictures["originals"], *pictures["pictures"]])
        found |= _of_test(summary.get("test") or {})
    return found


def _of_test(test: dict[str, Any]) -> dict[str, str]:
    found = {}
    if test.get("confusion") is not None and len(test["classes"]) > 1:
        names = [each["name"] for each in test["classes"]]
        found["confusion"] = _drawn(lambda ax: _confusion(np.asarray(test["confusion"]), names, ax), square=True)
    if "calibration" in test:
        bins = test["calibration"]
        display = CalibrationDisplay(
            _numbers(bins["confidence"]), _numbers(bins["accuracy"]), np.empty(0), float(_numbers(bins["error"]))
        )
        found["calibration"] = _drawn(lambda ax: display.plot(ax=ax))
    if "points" in test:
        found["residuals"] = _drawn(lambda ax: _residuals(_numbers(test["points"]), ax))
    if "coverage" in test:
        found["coverage"] = _drawn(lambda ax: _coverage(_numbers(test["coverage"]), ax))
    return found


def _numbers(values: Any) -> np.ndarray:
    """Numbers of a summary, in which those that JSON does not have are None or text."""
    return np.asarray(values, dtype=float)


@contextmanager
def _style() -> Iterator[None]:
    matplotlib = extra("matplotlib", "report", "A report")
    settings: dict[Any, Any] = {
        "svg.fonttype": "none",  # text stays text: small, searchable, in the page's font
        "svg.hashsalt": "pilae",
        "font.family": "sans-serif",
        "font.size": 10,
        "savefig.transparent": True,
        "path.simplify_threshold": 0.3,
        **dict.fromkeys(
            ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor", "legend.labelcolor"), TEXT
        ),
    }
    with matplotlib.rc_context(settings):
        yield


def _drawn(draw: Any, *, square: bool = False) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 4.6 if square else 3.2), layout="constrained")
    draw(figure.subplots())
    file = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # text stays text, and the browser has the font
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return _of_the_page(file.getvalue())


def _of_the_page(svg: str) -> str:
    """Without prologue and fixed size, and with the page's colours."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r'(?<=style=")[^"]*', _coloured, svg)


def _coloured(style: re.Match[str]) -> str:
    text = style.group()
    for colour, of_the_page in OF_THE_PAGE.items():
        text = text.replace(colour, of_the_page)
    return text


def _width_path(path: dict[str, Any], ax: Any) -> None:
    errors = {name: _numbers(values) for name, values in path["errors"].items()}
    spread = None if path["standard_errors"] is None else _numbers(path["standard_errors"])
    draw_width_path(ax, np.asarray(path["columns"]), errors, f"{path['ridge']:.1e}", spread, path["chosen"])


def _confusion(matrix: np.ndarray, names: list[str], ax: Any) -> None:
    share = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    red, green, blue = (int(COLOUR[k : k + 2], 16) / 255 for k in (1, 3, 5))
    ax.imshow(
        np.stack([np.full_like(share, c) for c in (red, green, blue)] + [share], axis=2)
    )  # the page shines through
    found = short_names(names, 14)
    short = [found[name] for name in names]
    ax.set_xticks(range(len(names)), _plain(short), rotation=90 if max(map(len, short)) > 3 else 0)
    ax.set_yticks(range(len(names)), _plain(short))
    ax.set(xlabel="predicted", ylabel="true")
    if len(names) <= 20:
        for i, row in enumerate(matrix):
            for j, count in enumerate(row):
                if count:
                    colour = "white" if share[i, j] > 0.5 else TEXT
                    ax.text(j, i, str(count), ha="center", va="center", color=colour, size=10 - len(names) // 4)


def _plain(names: list[str]) -> list[str]:
    """Names as they are: matplotlib would read dollars as mathematics."""
    return [name.replace("$", r"\$") for name in names]


def _residuals(points: np.ndarray, ax: Any) -> None:
    ax.axhline(0, color=FAINT, lw=1)
    ax.plot(points[:, 0], points[:, 1], ".", color=COLOUR, alpha=0.7, markersize=5)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set(xlabel="predicted", ylabel="true minus predicted")


def _coverage(pairs: np.ndarray, ax: Any) -> None:
    ax.plot([0, 1], [0, 1], color=FAINT, lw=1, label="as asked")
    ax.plot(pairs[:, 0], pairs[:, 1], "o-", color=OTHER, label="share of test targets inside")
    ax.spines[["top", "right"]].set_visible(False)
    ax.set(xlabel="coverage asked for", ylabel="coverage found", xlim=(0.4, 1), ylim=(0.4, 1))
    ax.legend(frameon=False)


def drawn_images(lines: list[list]) -> str:
    """Lines of images one below the other, the first being the originals, as one small PNG inside an SVG (pixels stay
    sharp); between them the page shines through."""
    import matplotlib.image

    rows = [np.nan_to_num(_numbers(images)) for images in lines]
    low, high = float(rows[0].min()), float(rows[0].max())
    gap = 2
    strips = []
    for images in rows:
        images = np.clip((images - low) / (high - low if high > low else 1.0), 0, 1)
        if images.ndim == 3:
            images = np.repeat(images[..., None], 3, axis=3)
        images = np.concatenate([images, np.ones((*images.shape[:3], 1))], axis=3)  # opaque, unlike what is around
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
