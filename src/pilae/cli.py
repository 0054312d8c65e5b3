"""The command line: from a table to a model, predictions, a report and an ONNX file."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from . import save
from .export import to_onnx
from .model import PILAEClassifier, PILAERegressor
from .sources import scan_blocks
from .tables import SAMPLE_ROWS, Encoder, TableFile, encoded, held_out

IN_MEMORY_BYTES = 500 * 2**20
"""Larger files are streamed: read in every pass, never held whole."""

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
        options.run(options)
    except (ValueError, OSError, ImportError) as error:
        print(f"pilae: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("pilae: stopped, nothing was written.", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pilae",
        description="Networks without gradient descent, from a table to predictions.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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
    fit.add_argument("--target", required=True, help="the column to predict")
    fit.add_argument("-o", "--output", required=True, help="the file for the model")
    fit.add_argument("--task", choices=("classification", "regression"), help="found from the target by default")
    fit.add_argument("--columns", help="columns to use, separated by commas (default: all others)")
    fit.add_argument("--holdout", type=float, default=0.1, metavar="SHARE", help="rows to test on (default 0.1)")
    fit.add_argument("--report", metavar="FILE", help="also write a report: .html, .md or .json")
    fit.add_argument("--seed", type=int, default=0)
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
    report.add_argument("model")
    report.add_argument("table", nargs="?", help="rows with targets that the model has not seen")
    report.add_argument("-o", "--output", required=True, help=".html, .md or .json file")

    export = command(
        "export", _export, "write the network for other runtimes", "pilae export model.pilae --onnx m.onnx"
    )
    export.add_argument("model")
    export.add_argument("--onnx", required=True, metavar="FILE")
    export.add_argument("--float32", action="store_true", help="compute in float32: half the size, five digits")

    info = command("info", _info, "say what a model file holds", "pilae info model.pilae")
    info.add_argument("model")
    command("demo", _demo, "train on built-in data and write a report", "pilae demo").add_argument(
        "-o", "--output", default="pilae-demo.html", help="the file for the report"
    )
    return parser


def _model_and_table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="what `pilae fit` wrote")
    parser.add_argument("table", help="a table with the same columns; - is CSV on standard input")


def _say(options: argparse.Namespace, found: dict[str, Any], lines: list[str]) -> None:
    print(json.dumps(found) if options.json else "\n".join(lines))


# ------------------------------------------------------------------------------------------------- commands


def _fit(options: argparse.Namespace) -> None:
    if not 0 <= options.holdout < 1:
        raise ValueError(f"--holdout must be at least 0 and below 1, not {options.holdout:g}.")
    for path in (options.output, options.report):
        _check_folder(path)
    table, start = TableFile(options.table), time.perf_counter()
    sample = table.sample()
    counted = len(sample) if len(sample) < SAMPLE_ROWS else None  # else nobody has counted them yet
    sample = sample[~held_out(0, len(sample), options.holdout)]  # held-out rows teach the encoder nothing either
    columns = options.columns.split(",") if options.columns else None
    small = options.table == "-" or os.path.getsize(options.table) <= IN_MEMORY_BYTES
    encoder = Encoder.fitted(sample, options.target, options.task, columns, counted)
    kind = PILAEClassifier if encoder.task == "classification" else PILAERegressor
    model = kind(random_state=options.seed, verbose=not options.quiet)
    if small:
        X, y = _joined(encoded(table, encoder, options.holdout, "train"))
        model.fit(X, y)
    else:
        model.fit(scan_blocks(lambda: encoded(table, encoder, options.holdout, "train")))
    held = _scored(model, table, encoder, options.holdout) if options.holdout else {"rows": 0}
    seconds = time.perf_counter() - start
    if options.report:
        rows = _joined(_first(encoded(table, encoder, options.holdout, "test"))) if held["rows"] else (None, None)
        model.report(*rows, title=f"{Path(options.table).name}: {options.target}").save(options.report)
    save.save(model, options.output, extra={"table": encoder})
    name = "accuracy" if encoder.task == "classification" else "R2"
    found = {
        "model": options.output,
        "task": encoder.task,
        "rows": model.fit_stats_["rows"],
        "columns": len(encoder.columns),
        "leave_one_out": model.loo_score_,
        "held_out": held.get("score"),
        "held_out_rows": held["rows"],
        "score": name,
        "seconds": seconds,
    }
    lines = [
        f"{encoder.task} of {options.target!r}: {found['rows']:,} rows, {found['columns']} columns, {seconds:.1f} s",
        f"leave-one-out {name:<9}{model.loo_score_:.4f}",
    ]
    if held["rows"]:
        lines.append(f"held-out {name:<14}{held['score']:.4f}  ({held['rows']:,} rows the model has not seen)")
    lines.append(f"written: {options.output}" + (f", {options.report}" if options.report else ""))
    _say(options, found, lines)


def _predict(options: argparse.Namespace) -> None:
    model, encoder = _loaded(options.model)
    classes = encoder.task == "classification"
    if options.proba and not classes:
        raise ValueError("--proba is for classes, and this model predicts numbers: use --interval for those.")
    if options.interval is not None and classes:
        raise ValueError("--interval is for numbers, and this model predicts classes: use --proba for those.")
    _check_folder(options.output)
    import pandas as pd

    rows, header = 0, True
    table = TableFile(options.table)
    with _written(options.output) as file:
        for piece in table.pieces():
            if not len(piece):
                raise ValueError(f"{table.name} has no rows.")
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
    if options.output != "-":
        _say(options, {"rows": rows, "output": options.output}, [f"{rows:,} rows predicted: {options.output}"])


def _evaluate(options: argparse.Namespace) -> None:
    model, encoder = _loaded(options.model)
    found = _scored(model, TableFile(options.table), encoder, 0.0, "all")
    if not found["rows"]:
        raise ValueError(f"{options.table!r} has no row with a target.")
    name = "accuracy" if encoder.task == "classification" else "R2"
    _say(options, found | {"score_is": name}, [f"{name} {found['score']:.4f} on {found['rows']:,} rows"])


def _report(options: argparse.Namespace) -> None:
    _check_folder(options.output)
    model, encoder = _loaded(options.model)
    rows: tuple[Any, Any] = (None, None)
    if options.table is not None:
        rows = _joined(_first(encoded(TableFile(options.table), encoder, 0.0, "all")))
    model.report(*rows, title=f"{Path(options.model).name}: {encoder.target}").save(options.output)
    _say(options, {"report": options.output}, [f"written: {options.output}"])


def _export(options: argparse.Namespace) -> None:
    _check_folder(options.onnx)
    held = save.load_all(options.model)
    encoder = held.get("table")
    to_onnx(held["model"], options.onnx, "float32" if options.float32 else "float64")
    lines = [f"written: {options.onnx}"]
    if encoder is not None:
        lines.append(
            "It covers the numeric network: the table encoder in front of it is not in the file, and rows must be "
            "encoded before (see the documentation on deployment)."
        )
    _say(options, {"onnx": options.onnx, "covers": "numeric network"}, lines)


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
    _check_folder(options.output)
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


def _joined(pieces: Iterator[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    parts = list(pieces)
    if not parts:
        raise ValueError("The table has no row with a target.")
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def _first(pieces: Iterator[tuple[np.ndarray, np.ndarray]], rows: int = 20_000) -> Iterator[tuple]:
    """As many pieces as a report needs."""
    count = 0
    for X, y in pieces:
        yield X, y
        count += len(X)
        if count >= rows:
            return


def _scored(model: Any, table: TableFile, encoder: Encoder, share: float, keep: str = "test") -> dict[str, Any]:
    truth, said = [], []
    for X, y in encoded(table, encoder, share, keep):
        truth.append(y)
        said.append(model.predict(X))
    if not truth:
        return {"rows": 0}
    y, predicted = np.concatenate(truth), np.concatenate(said)
    score = accuracy_score if encoder.task == "classification" else r2_score
    return {"rows": len(y), "score": float(score(y, predicted))}


def _check_folder(path: str | None) -> None:
    """Before hours of work, not after."""
    if path is not None and path != "-" and not Path(path).absolute().parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(Path(path).parent)!r} to write {path!r} into.")


@contextlib.contextmanager
def _written(path: str) -> Iterator[TextIO]:
    """Standard output, or a file that appears when everything is in it."""
    if path == "-":
        yield sys.stdout
        return
    with save.whole_file(Path(path)) as file, tempfile.TemporaryFile("w+", newline="") as text:
        yield text
        text.seek(0)
        for line in text:
            file.write(line.encode())


if __name__ == "__main__":
    sys.exit(main())
