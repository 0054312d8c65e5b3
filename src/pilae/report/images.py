"""The report on image features: filters, what they keep of images, and why they are these."""

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._arrays import Array, to_numpy
from ..plot.filters import filters_of
from ..save import versions
from .figures import drawn_images
from .page import Report
from .parts import Picture, Section, table, word
from .summary import code_of, plain

SHOWN_FILTERS = 48
SHOWN_IMAGES = 8
FILTERS_IN_A_ROW = 16

STRUCTURE = ("patch", "filters", "pool", "pooling", "encoder_ridge", "contrast", "threshold", "mirror", "depth")

CANDIDATE = ("patch", "pool", "encoder_ridge", "contrast", "threshold", "mirror", "depth", "filters", "width", "error")
"""What is shown of a candidate of the search."""


def summarise_images(model: BaseEstimator, X: Array | None = None) -> dict[str, Any]:
    """What is known about image features as plain values; with images also what is kept of them."""
    check_is_fitted(model)
    model = model._settled()
    summary: dict[str, Any] = {
        "kind": type(model).__name__,
        "versions": versions(),
        "image_shape": model.image_shape_,
        "features": model._n_features_out,
        "structure": {name: getattr(model, f"{name}_") for name in STRUCTURE},
        "layers": [
            {
                "branch": k,
                "layer": m,
                "patch": f"{layer.size[0]} x {layer.size[1]} x {layer.channels}",
                "responses": layer.width,
                "reconstruction_error": layer.reconstruction_error,
                "seconds": layer.seconds,
            }
            for k, branch in enumerate(model.branches_, 1)
            for m, layer in enumerate(branch.layers, 1)
        ],
        "search": model.search_,
        "filters": [filters_of(model, k)[:SHOWN_FILTERS] for k in range(len(model.branches_))],
        "code": code_of(model),
    }
    if X is not None:
        X = X[:SHOWN_IMAGES]
        shape = (-1, *model.image_shape_)
        images, rebuilt = (to_numpy(x).reshape(shape).astype(float) for x in (X, model.reconstruct(X)))
        summary["reconstruction"] = beside(images, rebuilt)
    return plain(summary)


def beside(images: np.ndarray, rebuilt: np.ndarray) -> dict[str, Any]:
    """Images and what is kept of them, and how far they are apart relative to the variance of all pixels."""
    total = np.mean((images - images.mean()) ** 2)
    error = np.mean((rebuilt - images) ** 2) / total if total > 0 else 0.0
    return {"error": error, "originals": drawable(images), "rebuilt": drawable(rebuilt)}


def drawable(images: np.ndarray) -> np.ndarray:
    """Gray or red, green and blue; of other numbers of channels the first."""
    return images[..., :3] if images.shape[3] in (3, 4) else images[..., 0]


def filter_sheets(filters: list[list]) -> dict[str, str]:
    """Name to SVG: a sheet of filters for each patch size."""
    sheets = {}
    for k, each in enumerate(filters):
        rows = [each[start : start + FILTERS_IN_A_ROW] for start in range(0, len(each), FILTERS_IN_A_ROW)]
        blank = np.full(np.shape(rows[0][0]), 0.5).tolist()
        sheets[f"filters{k}"] = drawn_images([[*row, *[blank] * (len(rows[0]) - len(row))] for row in rows])
    return sheets


class ImageReport(Report):
    """A report on a `ConvPILAE`."""

    candidate: tuple[str, ...] = CANDIDATE

    @cached_property
    def figures(self) -> dict[str, str]:
        sheets = filter_sheets(self.summary["filters"])
        kept = self.summary.get("reconstruction")
        if kept is not None:
            sheets["reconstruction"] = drawn_images([kept["originals"], kept["rebuilt"]])
        return sheets

    def lead(self) -> str:
        kind, features, (h, w, c) = (self.summary[key] for key in ("kind", "features", "image_shape"))
        colours = {1: "gray", 3: "colour"}.get(c, f"{c}-channel")
        return f"{kind}: {features:,} features of {h} x {w} {colours} images, in closed form."

    def tiles(self) -> list[dict[str, str]]:
        patch, filters, pool = (str(self.summary["structure"][key]) for key in ("patch", "filters", "pool"))
        values = {"features": f"{self.summary['features']:,}", "filters of each size": filters, "patch": patch}
        return [{"label": label, "value": value} for label, value in (values | {"grid": f"{pool} x {pool}"}).items()]

    def sections(self) -> list[Section]:
        sections = (self._layers(), self._kept(), self._search(), self._code())
        return [section for section in sections if section is not None]

    def _layers(self) -> Section:
        structure, layers = self.summary["structure"], self.summary["layers"]
        mirror = "features of an image and its mirror image are averaged" if structure["mirror"] else "no mirror images"
        text = [
            f"Pooling {structure['pooling']}; encoder ridge {structure['encoder_ridge']:g}; contrast "
            f"{structure['contrast']}; threshold {structure['threshold']:g}; {mirror}."
        ]
        head = ["branch", "layer", "patch", "responses", "reconstruction error", "seconds"]
        caption = "Autoencoders of patches; the error is of their own patches."
        section = Section("The layers", text, tables=[table(caption, head, [list(layer.values()) for layer in layers])])
        for k in range(len(self.summary["filters"])):
            size = next(layer["patch"] for layer in layers if layer["branch"] == k + 1)
            caption = f"Filters of {size}, which patches of the image are multiplied by."
            section.figures.append(Picture(self.figures[f"filters{k}"], caption))
        return section

    def _kept(self) -> Section | None:
        if "reconstruction" not in self.summary:
            return None
        error = self.summary["reconstruction"]["error"]
        text = [f"Relative squared error of images rebuilt from the responses of the first layer: {error:.4g}."]
        caption = "Images above what the first layer keeps of them."
        return Section("What the filters keep", text, [Picture(self.figures["reconstruction"], caption)])

    def _search(self) -> Section | None:
        search = [row for row in self.summary["search"] if row["loss"] is not None]
        untried = len(self.summary["search"]) - len(search)
        if not search:
            return None
        *choices, result = self.candidate
        rows = [
            [*(", ".join(map(str, row[key])) if key == "patch" else word(row[key]) for key in choices), row[result]]
            for row in search
        ]
        text = ["One choice after another, by the squared leave-one-out error of a linear output layer on a sample."]
        if untried:
            text.append(f"The time that was given was used up: at least {untried} more candidates would have come.")
        head, chosen = [key.replace("_", " ") for key in self.candidate], [bool(row["chosen"]) for row in search]
        tables = [table("Candidates, in the order they were tried.", head, rows, chosen=chosen)]
        return Section("Why these", text, tables=tables)
