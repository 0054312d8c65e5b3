"""The report on image features: filters, what they keep of images, and why they are these."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._arrays import to_numpy
from ..plot import filters_of
from ..save import versions
from .figures import drawn_images
from .page import Report, Section, table
from .summary import code_of, plain

SHOWN_FILTERS = 48
SHOWN_IMAGES = 8
FILTERS_IN_A_ROW = 16


def summarise_images(model: Any, X: Any = None) -> dict[str, Any]:
    """What is known about image features as plain values; with images also what is kept of them."""
    check_is_fitted(model)
    found: dict[str, Any] = {
        "kind": type(model).__name__,
        "versions": versions(),
        "image_shape": list(model.image_shape_),
        "features": int(model._n_features_out),
        "structure": {
            name: getattr(model, f"{name}_")
            for name in ("patch", "filters", "pool", "encoder_ridge", "contrast", "mirror", "depth")
        },
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
        "search": list(model.search_),
        "filters": [filters_of(model, k)[:SHOWN_FILTERS].tolist() for k in range(len(model.branches_))],
        "code": code_of(model),
    }
    if X is not None:
        X = X[:SHOWN_IMAGES]
        shape = model.image_shape_ if model.image_shape_[2] in (3, 4) else model.image_shape_[:2]
        first, back = (
            to_numpy(part).reshape(-1, *model.image_shape_).astype(float) for part in (X, model.reconstruct(X))
        )
        total = float(np.mean((first - first.mean()) ** 2))
        found["reconstruction"] = {
            "error": float(np.mean((back - first) ** 2)) / total if total > 0 else 0.0,
            "originals": _drawable(first, shape).tolist(),
            "rebuilt": _drawable(back, shape).tolist(),
        }
    return plain(found)


def _drawable(images: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Gray or red, green and blue; of other numbers of channels the first."""
    return images[..., :3] if len(shape) == 3 else images[..., 0]


class ImageReport(Report):
    """A report on a `ConvPILAE`."""

    @cached_property
    def figures(self) -> dict[str, str]:
        found = {}
        for k, filters in enumerate(self.summary["filters"]):
            rows = [filters[start : start + FILTERS_IN_A_ROW] for start in range(0, len(filters), FILTERS_IN_A_ROW)]
            blank = np.full(np.shape(rows[0][0]), 0.5).tolist()
            found[f"filters{k}"] = drawn_images([[*row, *[blank] * (len(rows[0]) - len(row))] for row in rows])
        kept = self.summary.get("reconstruction")
        if kept is not None:
            found["reconstruction"] = drawn_images([kept["originals"], kept["rebuilt"]])
        return found

    def lead(self) -> str:
        h, w, c = self.summary["image_shape"]
        kind = {1: "gray", 3: "colour"}.get(c, f"{c}-channel")
        return (
            f"{self.summary['kind']}: {self.summary['features']:,} features of {h} x {w} {kind} images, in closed form."
        )

    def tiles(self) -> list[dict[str, str]]:
        structure = self.summary["structure"]
        found = [("features", f"{self.summary['features']:,}"), ("filters of each size", str(structure["filters"]))]
        found += [("patch", str(structure["patch"])), ("grid", f"{structure['pool']} x {structure['pool']}")]
        return [{"label": label, "value": value} for label, value in found]

    def sections(self) -> list[Section]:
        structure, search = self.summary["structure"], self.summary["search"]
        mirror = "features of an image and its mirror image are averaged" if structure["mirror"] else "no mirror images"
        words = [f"Encoder ridge {structure['encoder_ridge']:g}; contrast {structure['contrast']}; {mirror}."]
        rows = [list(layer.values()) for layer in self.summary["layers"]]
        head = ["branch", "layer", "patch", "responses", "reconstruction error", "seconds"]
        layers = Section(
            "The layers",
            words,
            tables=[table("Autoencoders of patches; the error is of their own patches.", head, rows)],
        )
        for k in range(len(self.summary["filters"])):
            size = next(layer["patch"] for layer in self.summary["layers"] if layer["branch"] == k + 1)
            caption = f"Filters of {size}, which patches of the image are multiplied by."
            layers.figures += self._figure(f"filters{k}", caption)
        made = [layers]
        if "reconstruction" in self.summary:
            error = self.summary["reconstruction"]["error"]
            text = [f"Relative squared error of images rebuilt from the responses of the first layer: {error:.4g}."]
            figures = self._figure("reconstruction", "Images above what the first layer keeps of them.")
            made.append(Section("What the filters keep", text, figures))
        if search:
            keys = ("patch", "pool", "encoder_ridge", "contrast", "mirror", "depth", "filters", "features", "error")
            rows = [[row[key] if key != "patch" else ", ".join(map(str, row[key])) for key in keys] for row in search]
            text = [
                "One choice after another, by the squared leave-one-out error of a linear output layer on a sample, "
                "relative to that of always saying the mean."
            ]
            tables = [
                table(
                    "Candidates, in the order they were tried.",
                    [key.replace("_", " ") for key in keys],
                    rows,
                    chosen=[bool(row["chosen"]) for row in search],
                )
            ]
            made.append(Section("Why these", text, tables=tables))
        return [*made, self._code()]
