"""The command line: from a table to a model, predictions, a report and an ONNX file."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from . import save
from ._base.extras import extra
from ._base.files import whole_file
from ._base.progress import Progress
from ._data.sources import scan_blocks
from ._estimators.classifier import PILAEClassifier
from ._estimators.regressor import PILAERegressor
from ._tables.encoder import SAMPLE_ROWS, Encoder
from ._tables.files import Counted, Format, Part, TableFile, encoded, held_out
from .export import to_onnx
from .report import check_ending, make_report

IN_MEMORY_BYTES = 500 * 2**20
"""Larger files are streamed: read in every pass, never held whole."""

MOST_BYTES = 8 * IN_MEMORY_BYTES
"""Numbers that are held at once: a small file that unpacks to more is streamed too."""

EXAMPLES = """examples:
  pilae demo
  pilae fit houses.csv --target price -o houses.pilae --report houses.html
  pilae predict houses.pilae new.csv -o prices.csv --interval 0.9
  pilae evaluate houses.pilae sold.parquet --json
  pilae export houses.pilae --onnx houses.onnx
  cat new.csv | pilae predict houses.pilae - > prices.csv
"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 if it went well, 1 with one sentence on standard error if not, 2 for wrong usage."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn  # type: ignore[assignment]
            options.run(options)
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (ValueError, OSError, ImportError) as error:
        print(f"pilae: {_sentence(error)}", file=sys.stderr)
        return 1
    except MemoryError as error:
        why = f" ({' '.join(str(error).split())})" if str(error) else ""
        print(f"pilae: there is not enough memory for this{why}: give it fewer rows or columns.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("pilae: stopped, nothing was written.", file=sys.stderr)
        return 130
    return 0


def _sentence(error: Exception) -> str:
    """What went wrong, on one line; the system's own errors with the name of the file."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename!r}." if error.filename is not None else f"{error.strerror}."
    text = " ".join(str(error).split())
    return text if text.endswith((".", "?", "!", ")")) else f"{text}."


def _warn(message: Any, category: Any, filename: str, *_: Any) -> None:
    """Warnings of this library as sentences; those of others are not for people at a command line."""
    if Path(filename).is_relative_to(Path(__file__).parent) and issubclass(category, UserWarning):
        print(f"pilae: {' '.join(str(message).split())}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pilae",
        description="Networks without gradient descent, from a table to predictions.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pilae {save.versions()['pilae']}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")

    def command(name: str, run: Any, words: str, example: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name,
            help=words,
            description=words,
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(run=run)
        made.add_argument("--json", action="store_true", help="print the result as JSON")
        return made

    fit = command("fit", _fit, "train a model on a table", "pilae fit data.csv --target y -o model.pilae")
    fit.add_argument("table", help="CSV, TSV, Parquet, ARFF or npz file; - is CSV on standard input")
    _how_written(fit)
    fit.add_argument("--target", required=True, help="the column to predict")
    fit.add_argument("-o", "--output", required=True, help="the file for the model; - is standard output")
    fit.add_argument("--task", choices=("classification", "regression"), help="found from the target by default")
    fit.add_argument("--columns", help="columns to use, separated by commas (default: all others)")
    fit.add_argument("--holdout", type=float, default=0.1, metavar="SHARE", help="rows to test on (default 0.1)")
    fit.add_argument("--report", metavar="FILE", help="also write a report: .html, .md or .json")
    fit.add_argument("--seed", type=int, default=0, help="of the choice of rows that become neurons (default 0)")
    fit.add_argument(
        "--no-statistics", action="store_true", help="leave out what Python's partial_fit needs: a smaller file"
    )
    fit.add_argument("--quiet", action="store_true", help="no progress on standard error")

    predict = command(
        "predict", _predict, "predict the rows of a table", "pilae predict model.pilae new.csv -o out.csv"
    )
    _model_and_table(predict)
    predict.add_argument("-o", "--output", default="-", help="CSV file for the predictions (default: standard output)")
    predict.add_argument("--proba", action="store_true", help="also the probability of every class")
    predict.add_argument("--interval", type=float, metavar="COVERAGE", help="also intervals, for numbers: 0.9 is 90%%")

    evaluate = command(
        "evaluate", _evaluate, "score a model on a table with targets", "pilae evaluate model.pilae new.csv"
    )
    _model_and_table(evaluate)

    report = command("report", _report, "report on a model", "pilae report model.pilae new.csv -o report.html")
    report.add_argument("model", help="what `pilae fit` wrote")
    report.add_argument("table", nargs="?", help="rows with targets that the model has not seen")
    _how_written(report)
    report.add_argument("-o", "--output", required=True, help=".html, .md or .json file; - is HTML on standard output")

    export = command(
        "export", _export, "write the network for other runtimes", "pilae export model.pilae --onnx m.onnx"
    )
    export.add_argument("model", help="what `pilae fit` or `model.save` wrote")
    export.add_argument("--onnx", required=True, metavar="FILE", help="the file to write; - is standard output")
    export.add_argument(
        "--float32", action="store_true", help="first product in float32: faster for wide models without layers"
    )

    info = command("info", _info, "say what a model file holds", "pilae info model.pilae")
    info.add_argument("model", help="what `pilae fit` or `model.save` wrote")
    command("demo", _demo, "train on built-in data and write a report", "pilae demo").add_argument(
        "-o", "--output", default="pilae-demo.html", help="the file for the report"
    )
    return parser


def _model_and_table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="what `pilae fit` wrote")
    parser.add_argument("table", help="a table with the same columns; - is CSV on standard input")
    _how_written(parser)


def _how_written(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--separator", help="between the columns of a CSV file (default: found from its first line)")
    parser.add_argument("--encoding", help="of a CSV file (default: UTF-8, or UTF-16 where it is marked as that)")
    parser.add_argument("--decimal", default=".", help="the decimal point of a CSV file (default .)")


def _written_as(options: argparse.Namespace) -> Format:
    if len(options.decimal) != 1:
        raise ValueError(f"--decimal must be one character, not {options.decimal!r}.")
    separator = {"\\t": "\t", " ": r"\s+"}.get(options.separator, options.separator)
    if separator not in (None, r"\s+") and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0'):
        raise ValueError(
            f"--separator must be one ASCII character, and no quote or line end, not {options.separator!r} (a space "
            "is any number of spaces and tabs)."
        )
    if options.decimal == separator or options.decimal.isalnum() or options.decimal in '+-" \t\r\n\0':
        raise ValueError(f"--decimal {options.decimal!r} cannot be told from a digit, a separator or a quote.")
    return Format(separator, options.encoding, options.decimal)


def _say(options: argparse.Namespace, found: dict[str, Any], lines: list[str], output: str | None = None) -> None:
    """The result in words or JSON: on standard output, unless that is where the output itself went."""
    plain = {key: None if isinstance(value, float) and value != value else value for key, value in found.items()}
    print(json.dumps(plain) if options.json else "\n".join(lines), file=sys.stderr if output == "-" else sys.stdout)


# ------------------------------------------------------------------------------------------------- commands


def _fit(options: argparse.Namespace) -> None:
    if not 0 <= options.holdout < 1:
        raise ValueError(f"--holdout must be at least 0 and below 1, not {options.holdout:g}.")
    _check_output(options.output, options.table)
    if options.report is not None:
        check_ending(options.report)
        _check_output(options.report, options.table)
        _need_for_reports()
    progress, start = Progress(not options.quiet), time.perf_counter()
    table = TableFile(options.table, _written_as(options), target=options.target)
    sample = table.sample()
    counted = len(sample) if len(sample) < SAMPLE_ROWS else None  # else nobody has counted them yet
    sample = sample[~held_out(0, len(sample), options.holdout)]  # held-out rows teach the encoder nothing either
    columns = [name.strip() for name in options.columns.split(",")] if options.columns else None
    encoder = Encoder.fitted(sample, options.target, options.task, columns, counted, options.seed)
    del sample  # it may be a tenth of the memory
    save.check_saveable(encoder, "table")  # before the work, not after
    kind = PILAEClassifier if encoder.task == "classification" else PILAERegressor
    model, count = kind(random_state=options.seed, verbose=not options.quiet), Counted()
    train = None
    if table.size() <= IN_MEMORY_BYTES:
        progress.stage("reading and encoding the table")
        train = _joined(encoded(table, encoder, options.holdout, "train", count), MOST_BYTES)
    progress.close()
    if train is not None:
        model.fit(train.X, train.y)
    else:
        count = Counted()
        model.fit(scan_blocks(lambda: (part[:2] for part in encoded(table, encoder, options.holdout, "train"))))
    progress.stage("scoring held-out rows")
    held = _scored(model, table, encoder, options.holdout) if options.holdout else {"rows": 0}
    seconds = time.perf_counter() - start
    _save(model, encoder, options)
    if options.report:
        progress.stage("writing the report")
        part = _joined(_first(encoded(table, encoder, options.holdout, "test"))) if held["rows"] else None
        about = {"file": table.name, "rows": count.rows or model.fit_stats_["rows"] + held["rows"]}
        _written_report(model, encoder, part, options.report, about, _code(options, table, encoder))
    progress.close()
    name = "accuracy" if encoder.task == "classification" else "R2"
    found = {
        "model": options.output,
        "task": encoder.task,
        "rows": model.fit_stats_["rows"],
        "columns": len(encoder.columns),
        "leave_one_out": model.loo_score_,
        "held_out": held.get("score"),
        "held_out_rows": held["rows"],
        "rows_without_target": count.without_target,
        "score": name,
        "seconds": seconds,
    }
    lines = [
        f"{encoder.task} of {options.target!r}: {found['rows']:,} rows, {found['columns']} columns, {seconds:.1f} s",
        f"leave-one-out {name:<9}{model.loo_score_:.4f}",
    ]
    if encoder.whole_target and options.task is None:
        lines[0] += f" ({len(model.classes_)} whole numbers taken as classes; --task regression to predict numbers)"
    if held["rows"] and held["score"] is not None:
        lines.append(f"held-out {name:<14}{held['score']:.4f}  ({held['rows']:,} rows the model has not seen)")
    if count.without_target:
        lines.append(f"left out: {count.without_target:,} rows without a target")
    lines.append(f"written: {options.output}" + (f", {options.report}" if options.report else ""))
    _say(options, found, lines, options.output)


def _save(model: Any, encoder: Encoder, options: argparse.Namespace) -> None:
    with _output_path(options.output) as path:
        save.save(model, path, statistics=not options.no_statistics, extra={"table": encoder})


def _code(options: argparse.Namespace, table: TableFile, encoder: Encoder) -> str:
    """Python that does what `pilae fit` did, up to the rows it held out."""
    kind = "PILAEClassifier" if encoder.task == "classification" else "PILAERegressor"
    read = {"csv": "read_csv", "parquet": "read_parquet"}.get(table.kind)
    if read is None:
        return f"# the same file can be read back with\nimport pilae\n\nmodel = pilae.load({options.output!r})"
    text = len(encoder.numeric) < len(encoder.columns)
    steps = [
        *([f"TableVectorizer(high_cardinality=StringEncoder(random_state={options.seed}))"] if text else []),
        'SimpleImputer(strategy="median", keep_empty_features=True)',
        f"{kind}(random_state={options.seed})",
    ]
    return "\n".join(
        [
            "import pandas as pd",
            "from sklearn.impute import SimpleImputer",
            "from sklearn.pipeline import make_pipeline",
            *(["from skrub import StringEncoder, TableVectorizer"] if text else []),
            "",
            f"from pilae import {kind}",
            "",
            f"table = pd.{read}({table.path!r}).dropna(subset=[{encoder.target!r}])",
            "model = make_pipeline(",
            *(f"    {step}," for step in steps),
            ")",
            f"model.fit(table[{encoder.columns!r}], table[{encoder.target!r}])  # all rows: `pilae fit` held some out",
        ]
    )


def _predict(options: argparse.Namespace) -> None:
    model, encoder = _loaded(options.model)
    classes = encoder.task == "classification"
    if options.proba and not classes:
        raise ValueError("--proba is for classes, and this model predicts numbers: use --interval for those.")
    if options.interval is not None and classes:
        raise ValueError("--interval is for numbers, and this model predicts classes: use --proba for those.")
    if options.interval is not None and not 0 < options.interval < 1:
        raise ValueError(f"--interval must be between 0 and 1, such as 0.9, not {options.interval:g}.")
    if options.json and options.output == "-":
        raise ValueError("Predictions go to standard output as CSV: name a file with -o to get --json.")
    if Path(options.output).suffix.lower() in (".gz", ".parquet", ".arff", ".npz", ".xlsx", ".json"):
        raise ValueError(f"Predictions are written as CSV, not as {Path(options.output).suffix}: end -o in .csv.")
    _check_output(options.output, options.table)
    import pandas as pd

    rows, header = 0, True
    table = TableFile(options.table, _written_as(options), encoder=encoder)
    with _written(options.output) as file:
        for piece in filter(len, table.pieces()):
            X = encoder.transform(piece)
            out = {encoder.target: model.predict(X)}
            if options.proba:
                proba = model.predict_proba(X)
                out |= {f"{encoder.target}={label}": proba[:, k] for k, label in enumerate(model.classes_.tolist())}
            if options.interval is not None:
                ends = model.predict_interval(X, options.interval)
                out |= {"lower": ends[:, 0], "upper": ends[:, 1]}
            pd.DataFrame(out).to_csv(file, index=False, header=header)
            rows, header = rows + len(X), False
        if not rows:
            raise ValueError(f"{table.name} has no rows.")
    if options.output != "-":
        _say(options, {"rows": rows, "output": options.output}, [f"{rows:,} rows predicted: {options.output}"])


def _evaluate(options: argparse.Namespace) -> None:
    model, encoder = _loaded(options.model)
    table, count = TableFile(options.table, _written_as(options), target=encoder.target, encoder=encoder), Counted()
    found = _scored(model, table, encoder, 0.0, "all", count)
    if not found["rows"]:
        raise ValueError(f"{table.name} has no row with a target.")
    name = "accuracy" if encoder.task == "classification" else "R2"
    score = "undefined" if found["score"] is None else f"{found['score']:.4f}"
    line = f"{name} {score} on {found['rows']:,} rows"
    if count.without_target:
        line += f" ({count.without_target:,} rows without a target left out)"
    _say(options, found | {"score_is": name, "rows_without_target": count.without_target}, [line])


def _report(options: argparse.Namespace) -> None:
    if options.output != "-":
        check_ending(options.output)
    _check_output(options.output, options.table)
    _need_for_reports()
    model, encoder = _loaded(options.model)
    part, about = None, None
    if options.table is not None:
        table = TableFile(options.table, _written_as(options), target=encoder.target, encoder=encoder)
        count = Counted()
        part = _joined(_first(encoded(table, encoder, 0.0, "all", count)))
        about = {"file": table.name, "rows": count.rows}
    code = f"import pilae\n\nmodel = pilae.load({options.model!r})"
    _written_report(model, encoder, part, options.output, about, code)
    _say(options, {"report": options.output}, [f"written: {options.output}"], options.output)


def _written_report(
    model: Any, encoder: Encoder, part: Part | None, output: str, about: dict[str, Any] | None, code: str
) -> None:
    table = None
    if about is not None:
        kinds = ["numbers" if name in encoder.numeric else "text, dates or categories" for name in encoder.columns]
        columns = [
            {"name": name, "kind": kind, "missing": gaps}
            for name, kind, gaps in zip(encoder.columns, kinds, encoder.missing, strict=True)
        ]
        table = about | {"target": encoder.target, "columns": columns}
    X, y, numbers = (None, None, None) if part is None else part
    title = f"{encoder.target} of {Path(about['file']).name}" if about is not None else encoder.target
    report = make_report(model, X, y, title=title, code=code, table=table, numbers=numbers)
    if output == "-":
        sys.stdout.write(report.to_html())
    else:
        report.save(output)


def _export(options: argparse.Namespace) -> None:
    _check_output(options.onnx, options.model)
    held = save.load_all(options.model)
    encoder = held.get("table")
    with _output_path(options.onnx) as path:
        to_onnx(held["model"], path, "float32" if options.float32 else "float64")
    lines = [f"written: {options.onnx}"]
    if encoder is not None:
        lines.append(
            "It covers the numeric network: the table encoder in front of it is not in the file, and rows must be "
            "encoded before (see the documentation on deployment)."
        )
    _say(options, {"onnx": options.onnx, "covers": "numeric network"}, lines, options.onnx)


def _info(options: argparse.Namespace) -> None:
    found = save.read_header(options.model)
    held = save.load_all(options.model)
    model, encoder = held["model"], held.get("table")
    found["network"] = [int(model.n_features_in_), *(layer.width for layer in getattr(model, "layers_", []))]
    found["head_width"] = getattr(model, "head_width_", None)
    found["leave_one_out"] = getattr(model, "loo_score_", None)
    if encoder is not None:
        found |= {"target": encoder.target, "task": encoder.task, "columns": encoder.columns}
    lines = [f"{name:<15}{value}" for name, value in found.items()]
    _say(options, found, lines)


def _demo(options: argparse.Namespace) -> None:
    check_ending(options.output)
    _check_output(options.output)
    _need_for_reports()
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
    start = time.perf_counter()
    model = PILAEClassifier(random_state=0, verbose=not options.json).fit(X, y)
    seconds = time.perf_counter() - start
    model.report(X_test, y_test, title="Handwritten digits").save(options.output)
    found = {
        "rows": len(X),
        "seconds": seconds,
        "leave_one_out": model.loo_score_,
        "test": model.score(X_test, y_test),
        "report": options.output,
    }
    lines = [
        f"scikit-learn's digits: {len(X)} training rows, {seconds:.1f} s",
        f"leave-one-out accuracy {found['leave_one_out']:.4f}, on {len(X_test)} held-out rows {found['test']:.4f}",
        f"written: {options.output}",
    ]
    _say(options, found, lines)


# ------------------------------------------------------------------------------------------------- helpers


def _loaded(path: str) -> tuple[Any, Any]:
    held = save.load_all(path)
    if "table" not in held:
        raise ValueError(
            f"{path!r} holds a model but no table encoder, so it does not know columns: use pilae.load in Python, or "
            "fit it with `pilae fit`."
        )
    return held["model"], held["table"]


def _joined(pieces: Iterator[Part], most: float = math.inf) -> Part | None:
    """All parts as one; None if they are more than so many bytes."""
    parts, size = [], 0
    for part in pieces:
        parts.append(part)
        size += part.X.nbytes
        if size > most:
            return None
    if not parts:
        raise ValueError("The table has no row with a target, those held out aside.")
    return parts[0] if len(parts) == 1 else Part(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _first(pieces: Iterator[Part], rows: int = 20_000) -> Iterator[Part]:
    """As many pieces as a report needs."""
    count = 0
    for part in pieces:
        yield part
        count += len(part.X)
        if count >= rows:
            return


def _scored(
    model: Any, table: TableFile, encoder: Encoder, share: float, keep: str = "test", counted: Counted | None = None
) -> dict[str, Any]:
    truth, said = [], []
    for part in encoded(table, encoder, share, keep, counted):
        truth.append(part.y)
        said.append(model.predict(part.X))
    if not truth:
        return {"rows": 0}
    y, predicted = np.concatenate(truth), np.concatenate(said)
    if encoder.task == "classification":
        return {"rows": len(y), "score": float(accuracy_score(y, predicted))}
    return {"rows": len(y), "score": float(r2_score(y, predicted)) if len(y) > 1 else None}


def _need_for_reports() -> None:
    """Before hours of work, not after."""
    for package in ("matplotlib", "jinja2"):
        extra(package, "report", "A report")


def _check_output(path: str, read: str | None = None) -> None:
    """Whether a file can be written there, and is not the one that is read."""
    if path == "-":
        return
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(Path(path).parent)!r} to write {path!r} into.")
    if target.is_dir():
        raise IsADirectoryError(f"{path!r} is a folder: name a file in it.")
    if read not in (None, "-") and target == Path(os.path.realpath(str(read))):
        raise ValueError(f"{path!r} would take the place of the file that is read: choose another name.")
    if target.exists() and not target.is_file():
        return  # a device
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise type(error)(f"Cannot write {path!r}: {error.strerror or error}.") from error


@contextlib.contextmanager
def _output_path(path: str) -> Iterator[str]:
    """A path to write bytes to; what is written to "-" goes to standard output."""
    if path != "-":
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        name = str(Path(folder) / "out")
        yield name
        with open(name, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


@contextlib.contextmanager
def _written(path: str) -> Iterator[TextIO]:
    """Standard output, or a file that appears when everything is in it."""
    if path == "-":
        yield sys.stdout
        return
    with whole_file(Path(path)) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            yield text
        finally:
            text.detach()  # which writes what is left; the file is closed by who opened it


if __name__ == "__main__":
    sys.exit(main())
