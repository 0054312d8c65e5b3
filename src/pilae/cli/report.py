"""`pilae report` and `pilae demo`: what a model is, why, and how good, as a page."""

import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from .._base.extras import extra
from .._estimators.classifier import PILAEClassifier
from .._tables.file_columns import FileColumns
from .._tables.files import Counted, Part, parts_of
from ..report import check_ending, make_report
from .files import check_output, joined, loaded, opened, remark, tell
from .measures import scored

REPORT_ROWS = 20_000
"""As many as a report needs."""


def check_report(path: str, read: str | None = None, *, to_stdout: bool = False) -> None:
    """Whether a report can be made and written there: before hours of work, not after."""
    if not (to_stdout and path == "-"):
        check_ending(path)
    check_output(path, read)
    for package in ("matplotlib", "jinja2"):
        extra(package, "report", "A report")


def report(options: Namespace) -> None:
    """Report on a model, and on how good it is on the rows of a table."""
    options.output = options.output or f"{Path(options.model).stem}.html"
    check_report(options.output, options.table, to_stdout=True)
    model, columns = loaded(options.model)
    part, about, counted = None, None, Counted()
    if options.table is not None:
        table = opened(options, target=columns.target, known=columns)
        part, whole = first_rows(model, columns, parts_of(table, columns, 0.0, "all", counted))
        about = {"file": table.name, "rows": counted.rows, "missing": counted.missing, "whole": whole}
        remark(table.remarks)
    code = f"import pilae\n\nmodel = pilae.load({options.model!r})"
    write_report(model, columns, part, options.output, about, code)
    tell(options, {"report": options.output}, [f"written: {options.output}"], options.output)


def first_rows(model: BaseEstimator, columns: FileColumns, parts: Iterable[Part]) -> tuple[Part, dict[str, Any]]:
    """As many rows as a report needs, and how good the model is on all of them: the numbers of `pilae evaluate`."""
    kept: list[Part] = []

    def keeping() -> Iterator[Part]:
        for part in parts:
            if sum(len(each.X) for each in kept) < REPORT_ROWS:
                kept.append(part)
            yield part

    whole = scored(model, columns.task, keeping())
    part = joined(kept)
    assert part is not None  # no bound on bytes
    return part, whole


def write_report(
    model: BaseEstimator,
    columns: FileColumns,
    part: Part | None,
    output: str,
    about: dict[str, Any] | None,
    code: str,
) -> None:
    """A report on a model of a table; `about` says which file the table is, how many rows it has, and gaps; and how
    good the model is on all test rows (`whole`), of which the part has the first; and whether rows held out of it were
    taken in afterwards (`refitted`)."""
    title, table = columns.target, None
    if about is not None:
        missing = columns.missing if about["missing"] is None else about["missing"].tolist()
        own, keys = model.fitted_.columns, ("name", "kind", "width", "missing")
        each_column = zip(columns.columns, own.became(), own.widths().tolist(), missing, strict=True)
        became = [dict(zip(keys, each, strict=True)) for each in each_column]
        if about["missing"] is not None:
            trained = zip(became, columns.missing, strict=True)
            became = [each | {"missing_where_trained": gaps} for each, gaps in trained]
        table = {"file": about["file"], "rows": about["rows"], "target": title, "columns": became}
        if "refitted" in about:  # by `fit`, which draws its test rows from the file
            table |= {"held_out": True, "refitted": about["refitted"]}
        title = f"{title} of {Path(about['file']).name}"
    X, y, numbers = part or (None, None, None)
    whole = None if about is None else about.get("whole")
    page = make_report(model, X, y, title=title, code=code, table=table, numbers=numbers, whole=whole)
    if output == "-":
        sys.stdout.write(page.to_html())
    else:
        page.save(output)


def demo(options: Namespace) -> None:
    """Train on scikit-learn's digits and report on that."""
    check_report(options.output)
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
    start = time.perf_counter()
    model = PILAEClassifier(random_state=0, verbose=not options.json).fit(X, y)
    seconds = time.perf_counter() - start
    model.report(X_test, y_test, title="Handwritten digits").save(options.output)
    result = {
        "rows": len(X),
        "seconds": seconds,
        "leave_one_out": model.loo_score_,
        "test": model.score(X_test, y_test),
        "report": options.output,
    }
    lines = [
        f"scikit-learn's digits: {len(X)} training rows, {seconds:.1f} s",
        f"leave-one-out accuracy {result['leave_one_out']:.4f}, on {len(X_test)} held-out rows {result['test']:.4f}",
        f"written: {options.output}",
    ]
    tell(options, result, lines)
