"""What can be typed: every command with its arguments."""

import argparse
import os
from importlib import import_module
from typing import Any

EXAMPLES = """examples:
  pilae demo
  pilae fit houses.csv --target price --report houses.html
  pilae predict houses.pilae new.csv -o prices.csv --interval 0.9
  pilae evaluate houses.pilae sold.parquet --json
  pilae export houses.pilae --onnx houses.onnx
  cat new.csv | pilae predict houses.pilae - > prices.csv
  pilae fit photos/ --report photos.html
  pilae predict photos.pilae new/ -o classes.csv
"""


class Argument:
    """One argument, as `add_argument` of argparse takes it."""

    def __init__(self, *names: str, **settings: Any) -> None:
        self.names, self.settings = names, settings


MODEL = Argument("model", help="what `pilae fit` wrote")

ANY_MODEL = Argument("model", help="what `pilae fit` or `model.save` wrote")

HOW_WRITTEN = [
    Argument("--separator", help="between the columns of a CSV file (default: found from its first line)"),
    Argument("--encoding", help="of a CSV file (default: UTF-8, or UTF-16 where it is marked as that)"),
    Argument(
        "--skip-bad-rows",
        type=int,
        default=0,
        metavar="N",
        help="leave out up to N rows of a CSV file that are longer or shorter than its header, or N images that cannot "
        "be read (default 0)",
    ),
    Argument("--decimal", help="the decimal point of a CSV file (default: found from its first rows)"),
]

KNOWN_TABLE = "a table with the same columns; - is CSV on standard input; for images a folder"

EVALUATE = [MODEL, Argument("table", help=f"{KNOWN_TABLE} with one for each class"), *HOW_WRITTEN]

FIT = [
    Argument(
        "table",
        help="CSV, TSV, Parquet, JSON, xlsx, ARFF or npz file; - is CSV on standard input; or a folder that has one "
        "folder of images for each class",
    ),
    *HOW_WRITTEN,
    Argument("--target", help="the column to predict; needed for tables"),
    Argument("--size", metavar="WxH", help="pixels that images are brought to (default: found from the files)"),
    Argument(
        "-o", "--output", help="the file for the model (default: the table's name with .pilae); - is standard output"
    ),
    Argument("--task", choices=("classification", "regression"), help="found from the target by default"),
    Argument("--columns", help="columns to use, separated by commas (default: all others)"),
    Argument("--exclude", help="columns to leave out, separated by commas"),
    Argument("--holdout", type=float, default=0.1, metavar="SHARE", help="rows to test on (default 0.1)"),
    Argument("--no-refit", action="store_true", help="keep the held-out rows out of the model that is written"),
    Argument("--report", metavar="FILE", help="also write a report: .html, .md or .json"),
    Argument("--fast", action="store_true", help="one network of a plain shape instead of the best of many"),
    Argument("--linear", action="store_true", help="a linear model instead of a network"),
    Argument(
        "--budget",
        type=float,
        metavar="SECONDS",
        help="try no further network after so many seconds, and end with the best so far",
    ),
    Argument("--seed", type=int, default=0, help="of the choice of rows that become neurons (default 0)"),
    Argument("--statistics", action="store_true", help="keep what Python's partial_fit needs: a larger file"),
    Argument("--quiet", action="store_true", help="no progress on standard error"),
]

PREDICT = [
    MODEL,
    Argument("table", nargs="+", help=f"{KNOWN_TABLE}, or files"),
    *HOW_WRITTEN,
    Argument("-o", "--output", default="-", help="CSV file for the predictions (default: standard output)"),
    Argument("--id", metavar="COLUMNS", help="columns of the table to put beside the predictions, separated by commas"),
    Argument("--proba", action="store_true", help="also the probability of every class"),
    Argument("--interval", type=float, metavar="COVERAGE", help="also intervals, for numbers: 0.9 is 90%%"),
    Argument("--far", action="store_true", help="also whether a row lies far outside what the model was fitted on"),
]

REPORT = [
    MODEL,
    Argument("table", nargs="?", help="rows with targets, or a folder of images, that the model has not seen"),
    *HOW_WRITTEN,
    Argument(
        "-o",
        "--output",
        help=".html, .md or .json file (default: the model's name with .html); - is HTML on standard output",
    ),
]

EXPORT = [
    ANY_MODEL,
    Argument("--onnx", required=True, metavar="FILE", help="the file to write; - is standard output"),
    Argument("--float32", action="store_true", help="first product in float32: faster for wide models without layers"),
]

DEMO = [Argument("-o", "--output", default="pilae-demo.html", help="the file for the report")]

COMMANDS = {
    "fit": (".fit", "train a model on a table or on images", "data.csv --target y --exclude id", FIT),
    "predict": (".use", "predict the rows of a table, or images", "model.pilae new.csv -o out.csv", PREDICT),
    "evaluate": (".use", "score a model on a table with targets, or on images", "model.pilae new.csv", EVALUATE),
    "report": (".report", "report on a model", "model.pilae new.csv -o report.html", REPORT),
    "export": (".use", "write the model for other runtimes", "model.pilae --onnx m.onnx", EXPORT),
    "info": (".use", "say what a model file holds", "model.pilae", [ANY_MODEL]),
    "demo": (".report", "train on built-in data and write a report", "", DEMO),
}
"""Of each command the module with the function that runs it, what it does, an example and its arguments."""


def run(options: argparse.Namespace) -> None:
    """Run the command that was typed. Its module is imported here: asking for help needs none of scikit-learn."""
    home = ".pictures" if _of_images(options) else COMMANDS[options.command][0]
    getattr(import_module(home, __package__), options.command)(options)


def _of_images(options: argparse.Namespace) -> bool:
    """Whether it is about images: a folder to learn from, or a model that did."""
    if options.command == "fit":
        return os.path.isdir(options.table)
    if "model" not in options:
        return False
    return import_module("..save", __package__).read_header(options.model)["kind"] == "PILAEImageClassifier"


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """What was typed; wrong usage ends the program with status 2."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.command == "fit" and options.target is None and not os.path.isdir(options.table):
        if not os.path.exists(options.table):
            parser.error(f"there is no file or folder {options.table!r}.")
        parser.error("--target is missing: which column is to be predicted? (A folder of images needs none.)")
    return options


def make_parser() -> argparse.ArgumentParser:
    version = import_module("..", __package__).__version__
    layout = argparse.RawDescriptionHelpFormatter
    words = "Networks without gradient descent, from a table to predictions."
    parser = argparse.ArgumentParser(prog="pilae", description=words, epilog=EXAMPLES, formatter_class=layout)
    parser.add_argument("--version", action="version", version=f"pilae {version}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="command", dest="command")
    for name, (_, words, example, arguments) in COMMANDS.items():
        epilog = f"example:\n  pilae {name} {example}".rstrip()
        command = commands.add_parser(name, help=words, description=words, epilog=epilog, formatter_class=layout)
        command.add_argument("--json", action="store_true", help="print the result as JSON")
        for argument in arguments:
            command.add_argument(*argument.names, **argument.settings)
    return parser
