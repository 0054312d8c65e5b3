"""What is done with a model that was saved: `pilae predict`, `evaluate`, `export` and `info`."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .. import save
from .._data.strange import Strange
from .._tables.files import Counted, parts_of
from .._tables.frames import Column, Frame, is_whole
from .files import bytes_to, check_output, loaded, names_of, opened, remark, tell, text_to


def predict(options: Namespace) -> None:
    """The predictions of a table's rows, as CSV."""
    model, columns = loaded(options.model)
    if len(options.table) > 1:
        raise ValueError(f"Name one table at a time: there are {len(options.table)}.")
    [options.table] = options.table
    _check_predict(options, columns.task)
    rows, far, ids = 0, 0, names_of(options.id)
    asked, strange = model.fitted_.columns, Strange()
    table = opened(options, known=columns)  # says so where pandas is missing
    import pandas as pd

    with text_to(options.output) as file:
        for piece in filter(len, table.pieces()):
            beside = _ids(piece, ids, columns.target, table.name)
            X = asked.coded_rows(columns.transform(piece))
            strange.add(asked.strange_in(X))
            predictions, away = _predictions(model, columns.target, X, options), _far(model, X, len(piece))
            predictions |= {"far": away} if options.far else {}
            pd.DataFrame(beside | predictions).to_csv(file, index=False, header=not rows)
            rows, far = rows + len(piece), far + int(away.sum())
        if not rows:
            raise ValueError(f"{table.name} has no rows.")
    remark([*table.remarks, *strange.sentences()])
    if far:
        which = "the last column says which" if options.far else "--far says which"
        remark([f"{far:,} of {rows:,} rows lie far outside what the model was fitted on: {which}."])
    if options.output != "-":
        result = {"rows": rows, "rows_far_outside": far, "output": options.output}
        tell(options, result, [f"{rows:,} rows predicted: {options.output}"])


def _check_predict(options: Namespace, task: str) -> None:
    if options.proba and task == "regression":
        raise ValueError("--proba is for classes, and this model predicts numbers: use --interval for those.")
    if options.interval is not None and task == "classification":
        raise ValueError("--interval is for numbers, and this model predicts classes: use --proba for those.")
    if options.interval is not None and not 0 < options.interval < 1:
        raise ValueError(f"--interval must be between 0 and 1, such as 0.9, not {options.interval:g}.")
    check_csv(options)
    check_output(options.output, options.table)


def check_csv(options: Namespace) -> None:
    """Whether predictions can be written as asked."""
    if options.json and options.output == "-":
        raise ValueError("Predictions go to standard output as CSV: name a file with -o to get --json.")
    ending = Path(options.output).suffix
    if ending.lower() in (".gz", ".parquet", ".arff", ".npz", ".xlsx", ".json"):
        raise ValueError(f"Predictions are written as CSV, not as {ending}: end -o in .csv.")


def _ids(piece: Frame, names: list[str], target: str, where: str) -> dict[str, Column]:
    """Columns to put beside the predictions, whole numbers as such."""
    for name in names:
        if name not in piece.columns:
            raise ValueError(f"{where} has no column {name!r} to put beside the predictions.")
        if name == target:
            raise ValueError(f"--id {name!r} would have the name of the predictions: leave it out.")
    columns = {name: piece[name].reset_index(drop=True) for name in names}
    return {name: column.astype("Int64") if is_whole(column.dropna()) else column for name, column in columns.items()}


def _far(model: BaseEstimator, X: Any, rows: int) -> np.ndarray:
    """Whether each row lies far outside; of a model that does not know its range none does."""
    return np.zeros(rows, bool) if model.fitted_.bounds is None else model.is_far(X)


def _predictions(model: BaseEstimator, target: str, X: Any, options: Namespace) -> dict[str, np.ndarray]:
    """Columns of predictions, by name."""
    columns = {target: model.predict(X)}
    if options.proba:
        names = [f"{target}={label}" for label in model.classes_.tolist()]
        columns |= dict(zip(names, model.predict_proba(X).T, strict=True))
    if options.interval is not None:
        columns |= dict(zip(("lower", "upper"), model.predict_interval(X, options.interval).T, strict=True))
    return columns


def evaluate(options: Namespace) -> None:
    """The score on a table with targets."""
    from .measures import SCORES, measured  # scikit-learn's measures take a while, and `predict` needs none

    (model, columns), counted, strange = loaded(options.model), Counted(), Strange()
    table = opened(options, target=columns.target, known=columns)
    result = measured(model, columns.task, parts_of(table, columns, 0.0, "all", counted), strange)
    if not result["rows"]:
        raise ValueError(f"{table.name} has no row with a target.")
    remark([*table.remarks, *strange.sentences()])
    name = SCORES[columns.task]
    line = f"{name} {number(result['score'])} on {result['rows']:,} rows"
    if counted.without_target:
        line += f" ({counted.without_target:,} rows without a target left out)"
    measures = [f"{measure} {number(value)}" for measure, value in result["measures"].items()]
    tell(options, result | {"score_is": name, "rows_without_target": counted.without_target}, [line, *measures])


def number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}" if abs(value) < 100 else f"{value:,.1f}"


def export(options: Namespace) -> None:
    """The model as an ONNX file, from raw columns to the answer where they are known."""
    from ..export import onnx_inputs, to_onnx

    check_output(options.onnx, options.model)
    content = save.load_all(options.model)
    with bytes_to(options.onnx) as path:
        to_onnx(content["model"], path, "float32" if options.float32 else "float64", by_column="table" in content)
    inputs = {each.name: each.words for each in onnx_inputs(content["model"])} if "table" in content else {"X": "float"}
    lines = [f"written: {options.onnx}", *(f"  {name}: {words}" for name, words in inputs.items())]
    tell(options, {"onnx": options.onnx, "inputs": inputs}, lines, options.onnx)


def info(options: Namespace) -> None:
    """What a model file holds."""
    result, content = save.read_header(options.model), save.load_all(options.model)
    model, columns = content["model"], content.get("table")
    known = getattr(getattr(model, "fitted_", None), "columns", None)
    first = int(model.n_features_in_) if known is None else known.width  # what the network sees
    result["network"] = [first, *(layer.width for layer in getattr(model, "layers_", []))]
    result["head_width"] = getattr(model, "head_width_", None)
    result["leave_one_out"] = getattr(model, "loo_score_", None)
    result["rows"] = getattr(model, "fit_stats_", {}).get("rows")
    if columns is not None and columns.held_out is not None:
        result |= {"held_out": columns.held_out, "held_out_rows": columns.held_out_rows}
    lines = [f"{name.replace('_', ' '):<15}{_in_words(value)}" for name, value in result.items() if value is not None]
    if columns is not None:
        became = dict(zip(columns.columns, model.fitted_.columns.became(), strict=True))
        result |= {"target": columns.target, "task": columns.task, "columns": became}
        lines += [f"{'target':<15}{columns.target}", f"{'task':<15}{columns.task}", "columns"]
        lines += [f"  {name}: {words}" for name, words in became.items()]
    tell(options, result, lines)


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items())
    if isinstance(value, list):
        return "-".join(map(str, value))
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
