"""The commands where they are about images: from a folder for each class to a model, predictions and a report."""

import copy
import csv
import re
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from .. import save
from .._base.budget import time_budget
from .._base.progress import Progress
from .._base.sentences import listed
from .._estimators.image_classifier import PILAEImageClassifier
from .._pictures.decoder import Layout
from .._pictures.folders import Found, held_out_last, images_by_class, images_in
from .._pictures.reading import AT_A_SHELL, ImageReader, Pictures
from .._tables.files import Part
from ..report import ImageClassifierReport, summarise_image_classifier
from .files import bad_rows, bytes_to, check_output, default_output, remark, search_seconds, tell, text_to
from .measures import measures_of_classes, scored
from .report import check_report
from .use import check_csv, number

BLOCK_BYTES = 2**28
"""Of images that are read and predicted at a time: as many as fit, each block is compared with all of the model's."""

OF_TABLES = {
    **dict.fromkeys(("target", "task", "columns", "exclude", "separator", "encoding", "decimal", "id", "interval")),
    **dict.fromkeys(("statistics", "far", "linear"), False),
}
"""Options that mean nothing for images, and what they are where nobody gave them."""


def fit(options: Namespace) -> None:
    """Train on the images of a folder, score on some held out of it, fit again to all, save, report."""
    _check_options(options)
    seconds = search_seconds(options)
    with time_budget(0.0 if options.fast else seconds):
        _fit(options)


def _fit(options: Namespace) -> None:
    options.output = options.output or default_output(options.table)
    check_output(options.output)
    if options.report is not None:
        check_report(options.report)
    size, start, progress = _size(options.size), time.perf_counter(), Progress(not options.quiet)
    reader = ImageReader(bad_rows(options), progress, AT_A_SHELL)
    found, out = held_out_last(images_by_class(options.table), options.holdout)
    pictures = reader.by_class(found, size)
    progress.close()
    held = {str(path) for path in found.files[len(found.files) - out :]}
    train = sum(file not in held for file in pictures.files)  # they come first
    if len(set(pictures.labels[:train].tolist())) < 2:
        raise ValueError("Images of at least two classes are needed, those that cannot be read or are held out aside.")
    model = PILAEImageClassifier(random_state=options.seed, verbose=not options.quiet)
    model.fit(pictures.images[:train], pictures.labels[:train])
    rest = Pictures(pictures.images[train:], pictures.labels[train:], pictures.files[train:])
    test = scored(model, "classification", [_part(rest)] if rest.files else [])
    refitted = not options.no_refit and bool(rest.files)
    final = copy.copy(model)._fit_again(pictures.images, pictures.labels) if refitted else model
    seconds = time.perf_counter() - start
    with bytes_to(options.output) as path:
        save.save(final, path)
    if options.report:
        _write_report(model, rest if rest.files else None, options.report, options.table, _code(options, model))
    result = {
        "model": options.output,
        "task": "classification",
        **_about(model),
        "held_out": test["score"],
        "held_out_images": test["rows"],
        "refitted_on_all_images": refitted,
        "images_left_out": len(reader.bad),
        "score": "accuracy",
        "seconds": seconds,
        "remarks": [*found.remarks, *reader.remarks, *_twins(pictures, train)],
    }
    remark(result["remarks"])
    tell(options, result, _lines(result, options), options.output)


def _twins(pictures: Pictures, train: int) -> list[str]:
    """What is to be said of images that are there twice; those held out come last."""
    first, torn, again, remarks = dict[bytes, int](), [], 0, []
    digests = [sha256(image).digest() for image in pictures.images]
    for k, digest in enumerate(digests):
        twin = first.setdefault(digest, k)
        if pictures.labels[twin] != pictures.labels[k]:
            torn.append((pictures.files[twin], pictures.files[k]))
        elif twin < k < train:
            again += 1
    if torn:
        which = f"{len(torn):,} of {len(digests):,} images"
        remarks.append(
            f"{which} are in one class and, pixel by pixel the same, in another, such as {torn[0][0]!r} and "
            f"{torn[0][1]!r}: put each into one, nothing can tell them apart."
        )
    if again:
        which = f"{again:,} of {train:,} images"
        remarks.append(f"{which} are the same, pixel by pixel, as others of their class: leave-one-out is too high.")
    known = set(zip(digests[:train], pictures.labels[:train], strict=True))
    if count := sum(twin in known for twin in zip(digests[train:], pictures.labels[train:], strict=True)):
        which = f"{count:,} of {len(digests) - train:,} held-out images"
        remarks.append(
            f"{which} are the same, pixel by pixel, as images that were learnt from: the scores are too high."
        )
    return remarks


def _about(model: PILAEImageClassifier) -> dict[str, Any]:
    """What it was fitted to, and how it was found."""
    height, width, channels = model.image_shape_
    untried = sum(row["loss"] is None for row in model.search_)
    return {
        "images": model.fit_stats_["rows"],
        "classes": len(model.classes_),
        "size": [width, height],
        "channels": channels,
        "leave_one_out": model.loo_score_,
        "candidates": len(model.search_) - untried,
        "candidates_not_tried": untried,
    }


def _lines(result: dict[str, Any], options: Namespace) -> list[str]:
    (width, height), colours = result["size"], "gray" if result["channels"] == 1 else "colour"
    lines = [
        f"{result['classes']:,} classes of {width} x {height} {colours} images: {result['images']:,} images, "
        f"{result['seconds']:.1f} s",
        f"leave-one-out accuracy {result['leave_one_out']:.4f}",
    ]
    if result["held_out"] is not None:
        then = "then fitted again to all" if result["refitted_on_all_images"] else "left out"
        unseen = f"{result['held_out_images']:,} images it had not seen"
        lines.append(f"held-out accuracy      {result['held_out']:.4f}  ({unseen}, {then})")
    if result["candidates_not_tried"] and not options.fast:
        left = f"{result['candidates']} candidates tried, then the time was used up: at least"
        lines.append(f"{left} {result['candidates_not_tried']} more were not")
    return [*lines, f"written: {options.output}" + (f", {options.report}" if options.report else "")]


def _code(options: Namespace, model: PILAEImageClassifier) -> str:
    """Python that goes on from the file."""
    skip = f", skip={bad_rows(options)}" if bad_rows(options) else ""
    return f"""import pilae
from pilae.datasets import load_images

model = pilae.load({options.output!r})
images, labels, files = load_images({options.table!r}, like=model{skip})
model.predict(images)"""


def predict(options: Namespace) -> None:
    """The classes of images, as CSV."""
    _check_options(options)
    check_csv(options)
    for path in options.table:
        check_output(options.output, path)
    model, files = _loaded(options.model), images_in(options.table)
    reader, count = ImageReader(bad_rows(options), Progress(False), AT_A_SHELL), 0
    with text_to(options.output) as file:
        rows = csv.writer(file, lineterminator="\n")
        chances = [f"class={label}" for label in model.classes_.tolist()] if options.proba else []
        for part in _parts(model, reader, Found(files, [""] * len(files), [])):
            answers, P = _answers(model, part.X)
            if not count:
                rows.writerow(["file", "class", *chances])
            beside = P.tolist() if options.proba else [[]] * len(P)
            rows.writerows([files[k], a, *p] for k, a, p in zip(part.rows, answers, beside, strict=True))
            count += len(answers)
    remark(reader.left_out(len(files)))
    if options.output != "-":
        result = {"images": count, "images_left_out": len(reader.bad), "output": options.output}
        tell(options, result, [f"{count:,} images predicted: {options.output}"])


def evaluate(options: Namespace) -> None:
    """The score on the images of a folder for each class."""
    _check_options(options)
    model, found = _loaded(options.model), images_by_class(options.table, fewest=1)
    reader = ImageReader(bad_rows(options), Progress(False), AT_A_SHELL)
    asked = [(part.y, *_answers(model, part.X)) for part in _parts(model, reader, found)]
    y, predicted, P = map(np.concatenate, zip(*asked, strict=True))
    result: dict[str, Any] = {
        "images": len(y),
        "score": float(np.mean(predicted == y)),
        "measures": measures_of_classes(model.classes_, y, predicted, P),
        "score_is": "accuracy",
        "images_left_out": len(reader.bad),
    }
    remark([*found.remarks, *_unknown(model, found), *reader.left_out(len(found.files))])
    measures = [f"{measure} {number(value)}" for measure, value in result["measures"].items()]
    tell(options, result, [f"accuracy {number(result['score'])} on {result['images']:,} images", *measures])


def report(options: Namespace) -> None:
    """Report on a model, and on how good it is on the images of a folder."""
    _check_options(options)
    check_report(options.output, to_stdout=True)
    pictures, folder = None, options.table
    model = _loaded(options.model)
    if folder is not None:
        found, reader = images_by_class(folder, fewest=1), ImageReader(bad_rows(options), Progress(False), AT_A_SHELL)
        images, kept = reader.read(found.files, _layout(model))
        reader.check(len(found.files))
        labels = np.array([found.labels[k] for k in kept])
        pictures = Pictures(images, labels, [str(found.files[k]) for k in kept])
        remark([*found.remarks, *_unknown(model, found), *reader.left_out(len(found.files))])
    _write_report(model, pictures, options.output, folder, f"import pilae\n\nmodel = pilae.load({options.model!r})")
    tell(options, {"report": options.output}, [f"written: {options.output}"], options.output)


def export(options: Namespace) -> None:
    raise ValueError(
        "A classifier of images compares with the images it was fitted on, and that is not written as ONNX: in Python "
        "make_pipeline(ConvPILAE(), PILAEClassifier(depth=0, head='ridge')) is."
    )


def info(options: Namespace) -> None:
    """What a model file holds."""
    result, model = save.read_header(options.model), save.load_all(options.model)["model"]
    height, width, channels = model.image_shape_
    found = ("patch", "filters", "pool", "pooling", "encoder_ridge", "contrast", "threshold", "mirror", "shift")
    result |= {
        "images": f"{width} x {height}, {channels} channel{'s' if channels > 1 else ''}",
        "compared_with": len(model.anchors_),
        "leave_one_out": model.loo_score_,
        **{name: getattr(model, f"{name}_") for name in found},
        "classes": model.classes_.tolist(),
    }
    shown = result | {"classes": listed(result["classes"])}
    tell(options, result, [f"{name:<15}{value}" for name, value in shown.items()])


# ------------------------------------------------------------------------------------------------ what they share


def _check_options(options: Namespace) -> None:
    for name, default in OF_TABLES.items():
        if getattr(options, name, default) != default:
            raise ValueError(f"--{name} is for tables, and these are images: leave it out.")


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"([1-9]\d{0,4})[xX×]([1-9]\d{0,4})", text)
    if match is None:
        raise ValueError(f"--size must be width x height in pixels, such as 64x48, not {text!r}.")
    return int(match[1]), int(match[2])


def _loaded(path: str) -> PILAEImageClassifier:
    """A model that was fitted on what files of images hold."""
    model = save.load_all(path)["model"]
    if model.anchors_.dtype != np.uint8 or model.image_shape_[2] not in (1, 3):
        kind = f"{model.anchors_.dtype} images of {model.image_shape_[2]} channel(s)"
        raise ValueError(
            f"{path!r} was fitted on {kind}, and files of images hold bytes, gray or in colours: use pilae.load in "
            "Python, or fit it with `pilae fit`."
        )
    return model


def _layout(model: PILAEImageClassifier) -> Layout:
    height, width, channels = model.image_shape_
    return Layout(width, height, channels)


def _parts(model: PILAEImageClassifier, reader: ImageReader, found: Found) -> Iterator[Part]:
    """The images some at a time, as the model takes them, with classes and numbers of files."""
    layout = _layout(model)
    step = max(1, BLOCK_BYTES // (layout.width * layout.height * layout.channels))
    for start in range(0, len(found.files), step):
        images, kept = reader.read(found.files[start : start + step], layout)
        reader.check(len(found.files))
        at = start + np.array(kept, dtype=int)
        if kept:
            yield Part(images, np.array([found.labels[k] for k in at]), at)


def _answers(model: PILAEImageClassifier, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Classes, and probabilities of all classes, from one comparison."""
    P = model.predict_proba(images)
    return model.classes_[P.argmax(axis=1)], P


def _part(pictures: Pictures) -> Part:
    return Part(pictures.images, pictures.labels, np.arange(len(pictures.files)))


def _unknown(model: PILAEImageClassifier, found: Found) -> list[str]:
    """What is to be said of folders that are no classes of the model."""
    known = {str(label) for label in model.classes_.tolist()}
    names = [name for name in dict.fromkeys(found.labels) if name not in known]
    return [f"The model has no class {listed(names)}: images there are counted as wrong."] if names else []


def _write_report(
    model: PILAEImageClassifier, pictures: Pictures | None, output: str, folder: str | None, code: str
) -> None:
    X, y, files = pictures or (None, None, None)
    summary, shown = summarise_image_classifier(model, X, y, files=files, code=code)
    title = "Images" if folder is None else f"Images of {Path(folder).resolve().name}"
    page = ImageClassifierReport(summary, title, shown)
    if output == "-":
        sys.stdout.write(page.to_html())
    else:
        page.save(output)
