"""`pilae report` and `pilae demo`: what a model is, why, and how good, as a page."""

import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from .._base.extras import extra
from .._estimators.classifier import PILAEClassifier
from .._tables.encoder import TableEncoder
from .._tables.files import Counted, Part, encoded
from ..report import check_ending, make_report
from .files import check_output, joined, loaded, opened, remark, tell

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
    check_report(options.output, options.table, to_stdout=True)
    model, encoder = loaded(options.model)
    part, about, counted = None, None, Counted()
    if options.table is not None:
        table = opened(options, target=encoder.target, encoder=encoder)
        part = joined(encoded(table, encoder, 0.0, "all", counted), enough_rows=REPORT_ROWS)
        about = {"file": table.name, "rows": counted.rows, "missing": counted.missing}
        remark(table.remarks)
    code = f"import pilae\n\nmodel = pilae.load({options.model!r})"
    write_report(model, encoder, part, options.output, about, code)
    tell(options, {"report": options.output}, [f"written: {options.output}"], options.output)


def write_report(
    model: BaseEstimator, encoder: TableEncoder, part: Part | None, output: str, about: dict[str, Any] | None, code: str
) -> None:
    """A report on a model of a table; `about` says which file the table is, how many rows it has, and gaps."""
    title, table = encoder.target, None
    if about is not None:
        missing = encoder.missing if about["missing"] is None else about["missing"].tolist()
        named = zip(encoder.columns, encoder.kinds(), missing, strict=True)
        columns = [{"name": name, "kind": kind, "missing": gaps} for name, kind, gaps in named]
        table = {"file": about["file"], "rows": about["rows"], "target": title, "columns": columns}
        title = f"{title} of {Path(about['file']).name}"
    X, y, numbers = part or (None, None, None)
    page = make_report(model, X, y, title=title, code=code, table=table, numbers=numbers)
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
