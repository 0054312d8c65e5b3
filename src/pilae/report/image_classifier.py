"""The report on a classifier of images: how good it is, what it takes for what, and the images that it got wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._arrays import Array, dtype_name, space_of, to_numpy
from .._base.sentences import listed
from .._data.labels import plain_labels
from .._network.angles import AngleKernel
from .._network.patches import with_decoder
from ..plot.filters import filters_of
from ..save import versions
from .figures import drawn_images, figures_of_test
from .images import SHOWN_FILTERS, SHOWN_IMAGES, ImageReport, beside, drawable, filter_sheets
from .parts import LONGEST_NAME, Picture, Section, shortened, table, word
from .summary import code_of, plain, short_names
from .tested import tested_classes

PAIRS, EXAMPLES, HARDEST = 6, 6, 16
"""Pairs of classes that are told, images shown of each, and wrong images that are shown by themselves."""

SEEN_ANCHORS = 1000
"""Images whose patches say what filters keep."""

HALF_BYTE = 127
"""Bytes that are all below are of fewer levels, as masks are, and not dark."""

LONGEST_FILE = 60
"""Characters of the name of a file in a table."""

STRUCTURE = ("patch", "filters", "pool", "pooling", "encoder_ridge", "contrast", "threshold", "mirror", "shift")


def summarise_image_classifier(
    model: BaseEstimator,
    X: Array | None = None,
    y: Any = None,
    *,
    files: Sequence[str] | None = None,
    code: str | None = None,
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is known about a classifier of images as plain values, and the images that are shown, by name."""
    check_is_fitted(model)
    model, shown = model._settled(), dict[str, np.ndarray]()
    stats = model.fit_stats_
    summary: dict[str, Any] = {
        "kind": type(model).__name__,
        "versions": versions(),
        "image_shape": model.image_shape_,
        "pixels": _pixel_range(model.anchors_),
        "training": {
            "rows": stats["rows"],
            "seconds": stats["seconds"],
            "peak_megabytes": stats["peak_megabytes"],
            "leave_one_out": model.loo_score_,
            "leave_one_out_rows": len(model.loo_predictions_.rows),
            "compared_with": len(model.anchors_),
            "classes": [str(label) for label in model.classes_.tolist()],
        },
        "structure": {name: getattr(model, f"{name}_") for name in STRUCTURE} | {"ridge": model.ridge_},
        "kept": _kept(model.kernel_, model.anchors_, model.image_shape_),
        "search": model.search_,
        "filters": [filters_of(model, k)[:SHOWN_FILTERS] for k in range(len(model.kernel_.branches))],
        "code": code_of(model) if code is None else code,
    }
    if X is not None and y is None:
        raise ValueError("A report on images that were not seen needs their classes, too: report(X, y).")
    if X is not None:
        y = np.asarray(plain_labels(y)).reshape(-1)
        if len(y) != len(X):
            raise ValueError(f"There are {len(y)} classes for {len(X)} images: give one for each.")
        if files is not None and len(files) != len(y):
            raise ValueError(f"There are {len(files)} names of files for {len(y)} images: give one for each.")
        summary["test"], shown = _tested(model, X, y, files)
    summary["verdict"] = _verdict(plain(summary))
    return plain(summary), shown


def _kept(kernel: AngleKernel, anchors: np.ndarray, shape: tuple[int, ...]) -> dict[str, Any]:
    """What the filters of each size keep of patches, and what all of them keep of some images."""
    weights = kernel.branches[0].layers[0].weights
    images = space_of(weights).asarray(anchors[:SEEN_ANCHORS].reshape(-1, *shape), dtype_name(weights))
    layers = [with_decoder(branch.layers[0], images, 0) for branch in kernel.branches]
    few = images[:SHOWN_IMAGES, ...]
    rebuilt = np.mean([to_numpy(layer.rebuild(few)) for layer in layers], axis=0, dtype=float)
    errors = [[f"{layer.size[0]} x {layer.size[1]}", layer.width, layer.reconstruction_error] for layer in layers]
    return {"layers": errors} | beside(to_numpy(few).astype(float), rebuilt)


def _pixel_range(anchors: np.ndarray) -> list[float]:
    """What is drawn black, and what white: of bytes all there are, if the images come at least half as far."""
    whole = anchors.dtype == np.uint8 and anchors.max() > HALF_BYTE
    return [0.0, 255.0] if whole else [float(anchors.min()), float(anchors.max())]


def _tested(
    model: BaseEstimator, X: Array, y: np.ndarray, files: Sequence[str] | None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """How good it is on images, and those that are shown: of the pairs most confused, and the surest mistakes."""
    P = to_numpy(model.predict_proba(X))
    predicted = model.classes_[P.argmax(axis=1)]
    found = tested_classes(model.classes_, y, predicted, P, np.arange(len(y)))
    for key in ("worst", "worst_rows"):  # those with the lowest probability: here the surest mistakes are shown
        del found[key]
    names, answers = [str(label) for label in y.tolist()], [str(label) for label in predicted.tolist()]
    wrong = np.flatnonzero(predicted != y)
    wrong = wrong[np.argsort(-P[wrong].max(axis=1), kind="stable")]
    of_class = Counter(names)
    pairs = list[dict[str, Any]]()
    for (true, answer), count in Counter((names[k], answers[k]) for k in wrong).most_common(PAIRS):
        rows = [k for k in wrong if (names[k], answers[k]) == (true, answer)][:EXAMPLES]
        share = count / of_class[true]
        pairs.append({"true": true, "predicted": answer, "images": count, "share": share, "shown": rows})
    hardest = [
        {
            "image": int(k) if files is None else str(files[k]),
            "true": names[k],
            "predicted": answers[k],
            "probability": P[k].max(),
        }
        for k in wrong[:HARDEST]
    ]
    shown = {f"pair{k}": _images(model, X, pair["shown"]) for k, pair in enumerate(pairs)}
    shown |= {f"hardest{k}": _images(model, X, [row]) for k, row in enumerate(wrong[:HARDEST])}
    unknown = sorted(set(names) - {str(label) for label in model.classes_.tolist()})
    found |= {"rows": len(y), "shown_rows": len(y), "wrong": len(wrong), "pairs": pairs, "hardest": hardest}
    found["unknown_classes"] = unknown
    return found, shown


def _images(model: BaseEstimator, X: Array, rows: Sequence[int]) -> np.ndarray:
    """Some images as they can be drawn."""
    some = to_numpy(X.iloc[list(rows)]) if hasattr(X, "iloc") else np.stack([to_numpy(X[int(k)]) for k in rows])
    return drawable(some.reshape(-1, *model.image_shape_).astype(float))


def _verdict(summary: dict[str, Any]) -> list[str]:
    """What to make of it, in sentences."""
    left_out, test = summary["training"]["leave_one_out"], summary.get("test")
    if test is None:
        return [f"By leave-one-out on training images its accuracy is {left_out:.3f}."]
    low, high = test["interval"]
    said = [
        f"Of {test['rows']:,} test images {test['score']:.1%} are named right (95% interval {low:.3f} to {high:.3f}); "
        f"always saying “{shortened(test['guess_class'])}” would be right for {test['guess']:.1%}."
    ]
    if unknown := test["unknown_classes"]:
        said.append(f"The model has no class {listed(unknown)}: images there are counted as wrong.")
    if high < test["guess"]:
        said.append("That is worse than guessing: do not use it.")
    elif low <= test["guess"]:
        said.append("That is not surely better than guessing: the images may not show what the classes are.")
    if not low <= left_out <= high:
        easier = "harder" if left_out > high else "easier"
        said.append(
            f"The test images are {easier} than the training images, where leave-one-out gives {left_out:.3f}: look "
            "whether they come from the same place."
        )
    return said


class ImageClassifierReport(ImageReport):
    """A report on a `PILAEImageClassifier`."""

    row = "image"
    candidate = (*STRUCTURE[:1], *STRUCTURE[2:], "inner", "outer", "loss")

    def __init__(self, summary: dict[str, Any], title: str, shown: dict[str, np.ndarray]) -> None:
        super().__init__(summary, title)
        self._shown = shown

    @cached_property
    def figures(self) -> dict[str, str]:
        drawn, ends = figures_of_test(self.summary) | filter_sheets(self.summary["filters"]), self.summary["pixels"]
        drawn["reconstruction"] = drawn_images([self.summary["kept"][name] for name in ("originals", "rebuilt")], ends)
        for name, images in self._shown.items():
            blank = np.full((EXAMPLES - len(images), *images.shape[1:]), np.nan)  # so that all are drawn in one size
            line = images if name.startswith("hardest") else np.concatenate([images, blank])
            drawn[name] = drawn_images([line], ends)
        return drawn

    def lead(self) -> str:
        training, (h, w, c) = self.summary["training"], self.summary["image_shape"]
        colours = {1: "gray", 3: "colour"}.get(c, f"{c}-channel")
        return (
            f"{self.summary['kind']}: {len(training['classes']):,} classes of {w} x {h} {colours} images, compared by "
            f"angles with {training['compared_with']:,} of them, in closed form."
        )

    def tiles(self) -> list[dict[str, str]]:
        training, test = self.summary["training"], self.summary.get("test")
        numbers = {
            **({f"accuracy on {test['rows']:,} test images": test["score"]} if test else {}),
            "leave-one-out accuracy": training["leave_one_out"],
            "training images": training["rows"],
            "classes": len(training["classes"]),
            "seconds to fit": training["seconds"],
        }
        return [{"label": label, "value": word(value)} for label, value in numbers.items()]

    def sections(self) -> list[Section]:
        sections = [self._how_good(), *self._wrong_images(), self._compared(), self._search(), self._code()]
        return [section for section in sections if section is not None]

    def _how_good(self) -> Section | None:
        section = super()._how_good()
        if section is not None:
            section.figures += self._figures("calibration")
        return section

    def _wrong_images(self) -> list[Section]:
        test = self.summary.get("test")
        if test is None:
            return []
        classes = Section("Which classes it confuses")
        self._add_classes(classes, test)
        classes.figures = [
            Picture(each.svg, "Images by true and predicted class.") for each in self._figures("confusion")
        ]
        if not test["wrong"]:
            classes.text.append("Every test image is named right.")
            return [classes]
        names = self._names(test)
        for k, pair in enumerate(test["pairs"]):
            caption = f"“{names[pair['true']]}” taken for “{names[pair['predicted']]}”"
            of = f"{pair['images']:,} image{'s' if pair['images'] > 1 else ''}, {pair['share']:.1%} of the class"
            classes.figures.append(Picture(self.figures[f"pair{k}"], f"{caption}: {of}."))
        rows = [
            [names[pair["true"]], names[pair["predicted"]], pair["images"], pair["share"]] for pair in test["pairs"]
        ]
        head = ["true", "taken for", "images", "share of the class"]
        classes.tables.insert(0, table("The pairs of classes that are confused most often.", head, rows))
        return [classes, self._hardest(test, names)]

    def _names(self, test: dict[str, Any]) -> dict[str, str]:
        """Short names of classes, those of the test images that the model does not know too."""
        both = [name for each in (*test["pairs"], *test["hardest"]) for name in (each["true"], each["predicted"])]
        return short_names([*self.summary["training"]["classes"], *both], LONGEST_NAME)

    def _hardest(self, test: dict[str, Any], names: dict[str, str]) -> Section:
        section = Section(
            "The hardest images",
            ["Wrong, and surest of it: look whether the class they came with is right before anything else."],
        )
        rows = []
        files = short_names([each["image"] for each in test["hardest"] if isinstance(each["image"], str)], LONGEST_FILE)
        for k, each in enumerate(test["hardest"]):
            true, predicted = names[each["true"]], names[each["predicted"]]
            caption = f"{true}, taken for {predicted} ({each['probability']:.2f})"
            section.figures.append(Picture(self.figures[f"hardest{k}"], caption, tiny=True))
            rows.append([files.get(each["image"], each["image"]), true, predicted, each["probability"]])
        head = ["file" if isinstance(rows[0][0], str) else "test image", "true", "predicted", "its probability"]
        section.tables.append(table("Which images these are.", head, rows))
        return section

    def _compared(self) -> Section:
        structure, training = self.summary["structure"], self.summary["training"]
        patches = structure["patch"] if isinstance(structure["patch"], list) else [structure["patch"]]
        mirror = "an image and its mirror image are the same" if structure["mirror"] else "left and right differ"
        if structure["shift"]:
            moved = "a pixel" if structure["shift"] == 1 else f"{structure['shift']} pixels"
            mirror += f"; every image is there with copies that are moved by {moved}"
        sizes = ", ".join(f"{patch} x {patch}" for patch in patches)
        cells = f"{structure['pool']} x {structure['pool']}" + (" smooth" if structure["pooling"] == "smooth" else "")
        text = [
            f"Patches of {sizes} pixels, {structure['filters']:,} filters of each size; responses from "
            f"{structure['threshold']:g} on are averaged over a grid of {cells} cells; encoder ridge "
            f"{structure['encoder_ridge']:g}, contrast {structure['contrast']}; {mirror}. Output ridge "
            f"{word(structure['ridge'])}.",
            f"Others are compared with {training['compared_with']:,} of the training images, which are in the model.",
        ]
        section = Section("What images are compared by", text)
        for k, patch in enumerate(patches):
            caption = f"Filters of {patch} x {patch}, which patches of the image are multiplied by."
            section.figures.append(Picture(self.figures[f"filters{k}"], caption))
        kept = self.summary["kept"]
        caption = "What responses say of the patches that they are made from: squared error relative to the variance."
        section.tables.append(table(caption, ["patch", "responses", "reconstruction error"], kept["layers"]))
        caption = f"Images above what all responses keep of them (relative squared error {word(kept['error'])})."
        section.figures.append(Picture(self.figures["reconstruction"], caption))
        return section

    def _search(self) -> Section | None:
        section = super()._search()
        if section is not None:
            section.title, section.folded = "What was searched", True
            section.text[0] = "One choice after another, by the leave-one-out log-loss on a sample of the images."
        return section
