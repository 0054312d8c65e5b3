"""`pilae fit`: from a table to a model."""

import copy
import time
from argparse import Namespace
from collections.abc import Iterable

from .. import save
from .._base.budget import time_budget
from .._base.progress import Progress
from .._base.sentences import counted_as, listed
from .._data.sources import scan_blocks
from .._data.tables import SAMPLE_ROWS
from .._estimators.classifier import PILAEClassifier
from .._estimators.regressor import PILAERegressor
from .._estimators.shln import SHLN
from .._tables.file_columns import FileColumns
from .._tables.files import Counted, Part, TableFile, held_out, parts_of
from .._tables.frames import Frame
from .._tables.remarks import guessed, remarks
from .files import bytes_to, check_output, default_output, joined, names_of, opened, remark, search_seconds, tell
from .measures import SCORES, beside_guessing, scored
from .report import REPORT_ROWS, check_report, write_report

IN_MEMORY_BYTES = 500 * 2**20
"""Larger files are streamed: read in every pass, never held whole."""

MOST_BYTES = 8 * IN_MEMORY_BYTES
"""Rows that are held at once: a small file that unpacks to more is streamed too."""

Model = PILAEClassifier | PILAERegressor

ESTIMATORS: dict[str, type[Model]] = {"classification": PILAEClassifier, "regression": PILAERegressor}


def fit(options: Namespace) -> None:
    """Train on a table, score on rows held out of it, take these in too, save, report."""
    if options.size is not None:
        raise ValueError("--size is for images, and this is a table: leave it out.")
    if options.fast and options.linear:
        raise ValueError("--fast is a network of one shape, and --linear is none: choose one of them.")
    with time_budget(search_seconds(options)):
        _fit(options)


def _fit(options: Namespace) -> None:
    options.output = options.output or default_output(options.table)
    check_output(options.output, options.table)
    if options.report is not None:
        check_report(options.report, options.table)
    progress, start = Progress(not options.quiet), time.perf_counter()
    table = opened(options, target=options.target, task=options.task)
    columns, said, guess = _file_columns(table, options)
    model, counted = _trained(table, columns, options, progress)
    progress.stage("scoring held-out rows")
    test = scored(model, columns.task, _held_out(table, columns, options))
    columns.held_out, columns.held_out_rows = test["score"], test["rows"]
    refitted = not options.no_refit and bool(test["rows"])
    final = _with_held_out(model, table, columns, options) if refitted else model
    seconds = time.perf_counter() - start
    with bytes_to(options.output) as path:
        save.save(final, path, statistics=options.statistics, extra={"table": columns})
    if options.report:
        progress.stage("writing the report")
        part = joined(_held_out(table, columns, options), enough_rows=REPORT_ROWS) if test["rows"] else None
        rows = counted.rows or model.fit_stats_["rows"] + test["rows"]
        about = {"file": table.name, "rows": rows, "missing": counted.missing}
        if part is not None:
            about |= {"whole": test, "refitted": refitted}
        write_report(model, columns, part, options.report, about, _code(options, table))
    progress.close()
    untried = sum(row["loss"] is None for row in model.search_)
    result = {
        "model": options.output,
        "task": columns.task,
        "rows": model.fit_stats_["rows"],
        "columns": len(columns.columns),
        "leave_one_out": model.loo_score_,
        "held_out": test["score"],
        "held_out_rows": test["rows"],
        "refitted_on_all_rows": refitted,
        "rows_without_target": counted.without_target,
        "score": SCORES[columns.task],
        "seconds": seconds,
        "candidates": len(model.search_) - untried,
        "candidates_not_tried": untried,
        "remarks": said,
    }
    said += beside_guessing(columns.task, guess, result)
    remark(said)
    tell(options, result, _lines(result, options, columns, model), options.output)


def _held_out(table: TableFile, columns: FileColumns, options: Namespace) -> Iterable[Part]:
    return parts_of(table, columns, options.holdout, "test") if options.holdout else ()


def _with_held_out(model: Model, table: TableFile, columns: FileColumns, options: Namespace) -> Model:
    """The model with the held-out rows in its output layer, which is then the one of a fit to all rows."""
    model = copy.copy(model)
    for part in _held_out(table, columns, options):
        model.partial_fit(part.X, part.y)
    return model


def _file_columns(table: TableFile, options: Namespace) -> tuple[FileColumns, list[str], float]:
    """What the columns are, from the first rows of the table, what is to be said about them, and what guessing is
    worth."""
    sample = table.sample()
    rows = len(sample) if len(sample) < SAMPLE_ROWS else None  # else nobody has counted them yet
    sample = sample[~held_out(0, len(sample), options.holdout)]  # held-out rows are not looked at
    columns = FileColumns.found(sample, options.target, options.task, _columns(sample, options), rows)
    columns.gap_words = {name: words for name, words in table.gap_words.items() if name in set(columns.numeric)}
    columns.target_format = table.target_format
    return columns, [*table.remarks, *remarks(columns, sample)], guessed(columns, sample)


def _columns(sample: Frame, options: Namespace) -> list[str] | None:
    """Those to predict from; None for all."""
    chosen, excluded = names_of(options.columns), names_of(options.exclude)
    if not excluded:
        return chosen or None
    there = set(sample.columns)
    for name in excluded:
        if name not in there:
            raise ValueError(f"There is no column {name!r} to exclude: the columns are {listed(list(sample.columns))}.")
    names = chosen or [name for name in sample.columns if name != options.target]
    left = [name for name in names if name not in set(excluded)]
    if not left:
        raise ValueError("--exclude leaves no column to predict from.")
    return left


def _trained(table: TableFile, columns: FileColumns, options: Namespace, progress: Progress) -> tuple[Model, Counted]:
    """The model, fitted in memory or to a stream; in memory also what was counted on the way there."""
    shape: dict = {"depth": 0, "input_scaling": "standard", "head": SHLN()} if options.fast else {}
    if options.linear:
        shape = {"depth": 0, "head": "ridge"}
    if columns.dtype != "float64":
        shape["dtype"] = columns.dtype
    model = ESTIMATORS[columns.task](random_state=options.seed, verbose=not options.quiet, **shape)
    counted = Counted()
    train = None
    if table.size() <= IN_MEMORY_BYTES:
        progress.stage("reading the table")
        train = joined(parts_of(table, columns, options.holdout, "train", counted), most_bytes=MOST_BYTES)
    progress.close()
    if train is not None:
        return model.fit(train.X, train.y), counted
    stream = scan_blocks(lambda: (part[:2] for part in parts_of(table, columns, options.holdout, "train")))
    return model.fit(stream), Counted()


def _lines(result: dict, options: Namespace, columns: FileColumns, model: Model) -> list[str]:
    score, held_out, size = (
        result["score"],
        result["held_out"],
        ", ".join([counted_as(result["rows"], "row"), counted_as(result["columns"], "column")]),
    )
    first = f"{columns.task} of {options.target!r}: {size}, {result['seconds']:.1f} s"
    if columns.whole_target and options.task is None:
        first += f" ({len(model.classes_)} whole numbers taken as classes; --task regression to predict numbers)"
    lines = [first, f"leave-one-out {score:<9}{model.loo_score_:.4f}"]
    if held_out is not None:
        taken_in = "then taken in" if result["refitted_on_all_rows"] else "left out"
        lines.append(
            f"held-out {score:<14}{held_out:.4f}  ({result['held_out_rows']:,} rows it had not seen, {taken_in})"
        )
    if result["candidates_not_tried"]:
        tried, left = counted_as(result["candidates"], "network"), result["candidates_not_tried"]
        lines.append(
            f"{tried} tried, then the time was used up: at least {left} more {'was' if left == 1 else 'were'} not"
        )
    if result["rows_without_target"]:
        lines.append(f"left out: {counted_as(result['rows_without_target'], 'row')} without a target")
    return [*lines, f"written: {options.output}" + (f", {options.report}" if options.report else "")]


def _code(options: Namespace, table: TableFile) -> str:
    """Python that goes on from the file."""
    rows = f"pd.read_{table.kind}({table.path!r})" if table.kind in ("csv", "parquet") else "..."
    return f"""import pandas as pd
import pilae

model = pilae.load({options.output!r})  # a scikit-learn pipeline: "table" finds the columns, "model" learns from them
table = {rows}
model.predict(table)"""
