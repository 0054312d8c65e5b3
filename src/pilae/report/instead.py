"""What figures show, as tables: for pages that have no figures."""

from typing import Any

from .columns import spread_rows
from .parts import LONGEST_NAME, Table, as_given, shares, shortened, table
from .summary import short_names

POINTS = 5
"""Of a curve along numbers."""

MATRIX_CLASSES = 12
"""A matrix of more classes is too wide for a table."""


def of_columns(summary: dict[str, Any], score: str) -> list[Table]:
    """Which columns matter, and how answers follow the first of them."""
    tables, lost, moved = [], summary.get("shuffled"), summary.get("importances")
    if lost is not None:
        names = short_names([each["column"] for each in lost], LONGEST_NAME)
        rows = [[names[each["column"]], each["loss"], each["spread"]] for each in lost]
        caption = "lost when a column's values are dealt to other rows, mean and spread of five shuffles."
        head, ways = ["column", "lost", "spread"], {1: shares, 2: shares}
        tables.append(table(f"{score.capitalize()} {caption}", head, rows, ways=ways))
    elif moved is not None and not (summary.get("reconstruction") or {}).get("pictures"):  # pixels have no names
        rows = [[shortened(each["column"]), each["share"]] for each in moved]
        caption = "How much each column moves the outputs, all columns together 1."
        tables.append(table(caption, ["column", "share"], rows, ways={1: shares}, most=15))
    return tables + [_curve(curve, "classes" in summary["training"]) for curve in summary.get("curves", [])]


def _curve(curve: dict[str, Any], classes: bool) -> Table:
    lines, at = curve["lines"], range(len(curve["values"]))
    if curve["numeric"]:
        at = spread_rows(len(curve["values"]), POINTS).tolist()
    rows = [[curve["values"][k], *(means[k] for means in lines.values())] for k in at]
    what = "The mean probability" if classes else "The mean prediction"
    caption = f"{what} when all rows have the same value in {shortened(curve['column'])}."
    names = [shortened(name) for name in lines]
    ways = {0: as_given} | ({k + 1: shares for k in range(len(lines))} if classes else {})
    return table(caption, [shortened(curve["column"]), *names], rows, ways=ways)


def of_tested(test: dict[str, Any]) -> list[Table]:
    """Where it is wrong."""
    tables, classes = [], [each["name"] for each in test.get("classes", [])]
    names = short_names(classes, LONGEST_NAME)
    if test.get("confusion") is not None and 1 < len(classes) <= MATRIX_CLASSES:
        rows = [[names[name], *counts] for name, counts in zip(classes, test["confusion"], strict=True)]
        caption = "Rows by true class (down) and predicted class (across)."
        tables.append(table(caption, ["", *(names[name] for name in classes)], rows))
    if test.get("roc"):
        rows = [[names[each["name"]], each["area"]] for each in test["roc"]]
        caption = "Area under the ROC curve: 1 where a class is told apart from the others, 0.5 by guessing."
        tables.append(table(caption, ["class", "area"], rows, ways={1: shares}))
    if "calibration" in test:
        bins = zip(test["calibration"]["confidence"], test["calibration"]["accuracy"], strict=True)
        caption = "How often predictions are right, against the probability they were given."
        head = ["probability of the predicted class", "share of right predictions"]
        tables.append(table(caption, head, [list(each) for each in bins], ways={0: shares, 1: shares}))
    return tables
