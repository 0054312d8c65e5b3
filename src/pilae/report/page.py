"""From a summary and its figures to text: HTML, Markdown, JSON."""

import html
import json
import os
import re
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from .._arrays import Array
from .._base.extras import extra
from .._base.files import whole_file
from .figures import figures, line_colours
from .inside import layers_section, network_section, search_section
from .instead import of_columns, of_tested
from .parts import (
    LONGEST_NAME,
    SHORT_NAME,
    Picture,
    Section,
    Table,
    alike,
    as_given,
    share,
    shares,
    shortened,
    table,
    word,
)
from .summary import short_names, summarise
from .tested import MOST_CLASSES
from .verdict import amount
from .words import CAPTIONS

SHOWN_COLUMNS = 60
SHOWN_CLASSES = 60
SHOWN_NAMES = 20

WAYS = {".html": "to_html", ".htm": "to_html", ".md": "to_markdown", ".json": "to_json"}
"""How to write a report, by the ending of its file."""


def check_ending(path: str | os.PathLike) -> str:
    """The ending of a path that a report can be saved to."""
    ending = Path(path).suffix.lower()
    if ending not in WAYS:
        raise ValueError(f"A report is written to a file that ends in {', '.join(WAYS)}; got {os.fspath(path)!r}.")
    return ending


class Report:
    """A report that can be shown in a notebook and saved.

    Attributes
    ----------
    summary : dict
        Everything it says, as plain values.
    """

    row = "row"
    """What is learnt from and tested on."""

    def __init__(self, summary: dict[str, Any], title: str) -> None:
        self.summary, self.title = summary, title

    @cached_property
    def figures(self) -> dict[str, str]:
        """Name to SVG."""
        return figures(self.summary)

    def save(self, path: str | os.PathLike) -> None:
        """Write the report, whole or not at all: HTML, Markdown or JSON for paths that end in .html (or .htm), .md or
        .json."""
        text = getattr(self, WAYS[check_ending(path)])()
        with whole_file(Path(path)) as file:
            file.write(text.encode())

    def to_json(self) -> str:
        return json.dumps(self.summary, indent=1, allow_nan=False) + "\n"

    def to_html(self) -> str:
        """One page with everything in it: no script, nothing from elsewhere; what users named is escaped."""
        return self._rendered("page.html.j2", autoescape=True)

    def to_markdown(self) -> str:
        """The same with tables in place of figures."""
        return self._rendered("page.md.j2", trim_blocks=True, keep_trailing_newline=True)

    def _rendered(self, name: str, **settings: bool) -> str:
        jinja2 = extra("jinja2", "report", "A report")
        environment = jinja2.Environment(undefined=jinja2.StrictUndefined, **settings)
        environment.filters["plain"] = _plain
        template = environment.from_string((Path(__file__).parent / name).read_text())
        content = {"lead": self.lead(), "tiles": self.tiles(), "sections": self.sections(), "foot": self.foot()}
        content["verdict"] = self.summary.get("verdict", [])
        return template.render(title=self.title, **content)

    def _repr_html_(self) -> str:
        page = html.escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:40rem;border:0"></iframe>'

    # --------------------------------------------------------------------------------------------- what it says

    def lead(self) -> str:
        training, network = self.summary["training"], self.summary["network"]
        widths = [training["inputs"], *(layer["width"] for layer in network["layers"])]
        head = network.get("head")
        if head is not None and head["kind"] == "SHLN":
            widths.append(f"{head['width']} (head)")
        if "outputs" in training:
            widths.append(training["outputs"])
        shape = "–".join(map(str, widths))
        return f"{self.summary['kind']}: a network {shape}, trained in closed form by pseudoinverse learning."

    @property
    def _score(self) -> str:
        return "accuracy" if "classes" in self.summary["training"] else "R²"

    def tiles(self) -> list[dict[str, str]]:
        training, test, file = self.summary["training"], self.summary.get("test"), self.summary.get("table")
        way = f"leave-{'group' if training.get('grouped') else 'one'}-out {self._score}"
        seconds, first = training["seconds"], " at first" if training["stale"] else ""
        if test and file and file.get("refitted"):
            first = f" (saved model: {training['rows'] + test['rows']:,})"
        tiles: dict[str, tuple[Any, Callable[[Any], str]]] = {
            **({f"{self._score} on {test['rows']:,} test rows": (test["score"], share)} if test else {}),
            way + (" of the first rows" if training["stale"] else ""): (training["leave_one_out"], share),
            f"training rows{first}": (training["rows"], word),
            "columns": (training["columns"] if file is None else len(file["columns"]), word),
            "seconds to fit": (round(seconds, 1) if isinstance(seconds, float) else seconds, str),
        }
        shown = {label: each for label, each in tiles.items() if each[0] is not None}
        return [{"label": label, "value": write(value)} for label, (value, write) in shown.items()]

    def sections(self) -> list[Section]:
        sections = [
            self._how_good(),
            self._columns_that_matter(),
            self._wrong(),
            self._data(),
            network_section(self.summary, self._figures),
            search_section(self.summary, self._figures),
            layers_section(self.summary, self._figures),
            self._code(),
        ]
        return [section for section in sections if section is not None]

    def _figures(self, *names: str, small: bool = False) -> list[Picture]:
        """Those of the named figures that there are."""
        there = [name for name in names if name in self.figures]
        return [Picture(self.figures[name], CAPTIONS.get(name, ""), small) for name in there]

    def _how_good(self) -> Section | None:
        training, test = self.summary["training"], self.summary.get("test") or {}
        section = Section("How good it is")
        if test and test["shown_rows"] < test["rows"]:
            section.text.append(
                f"Figures and tables are of the first {test['shown_rows']:,} of the {test['rows']:,} test {self.row}s."
            )
        linear, judged = training.get("linear"), test.get("linear") or {}
        rows: list[list[Any]] = [["this model", test.get("score"), _within(test), training["leave_one_out"]]]
        if linear is not None:
            rows.append(["a linear model of the same columns", judged.get("score"), _within(judged), linear["score"]])
        if "guess" in test:
            guess = f"always “{shortened(test['guess_class'])}”" if "guess_class" in test else "the mean of all rows"
            rows.append([f"guessing: {guess}", test["guess"], None, None])
        if len(rows) > 1 or test:
            caption = f"1 is perfect. Leave-one-out: each training {self.row} by an output layer that has not seen it."
            if training.get("stale"):
                caption += " It is of the rows of the first fit: others have come or gone since."
            head = [self._score, f"on test {self.row}s", "95% interval", "by leave-one-out"]
            section.tables.append(table(caption, head, rows, ways={1: shares, 3: shares}))
        section.text += self._more_scores(test)
        return section if section.tables else None

    def _more_scores(self, test: dict[str, Any]) -> list[str]:
        if test and test["score"] is None:
            return ["One row has no R², which compares with the mean of the rows."]
        if "mean_absolute_error" in test:
            return [f"Mean absolute error {amount(test['mean_absolute_error'])}."]
        if "log_loss" in test:
            error = test["calibration"]["error"]
            return [f"Log-loss {share(test['log_loss'])}; calibration error {share(error)}."]
        whole_sets = test and "classes" not in test and "classes" in self.summary["training"]
        return ["The accuracy is of whole sets of labels."] if whole_sets else []

    def _columns_that_matter(self) -> Section | None:
        section = Section("Which columns matter", figures=self._figures("shuffled", "importances"))
        drawn = self.summary.get("curves", [])
        section.figures += self._figures(*(f"curve{k}" for k in range(len(drawn))), small=True)
        if drawn:
            what = "The mean probability" if "classes" in self.summary["training"] else "The mean prediction"
            classes = list(drawn[0]["lines"]) if "classes" in self.summary["training"] else []
            of_one = f" of “{shortened(classes[0])}”" if len(classes) == 1 else ""
            section.of_figures.append(
                f"The small figures: {what.lower()}{of_one} when all rows have the same value in one column, whatever "
                "else they hold. It says what the model does, not what causes what."
            )
            if len(classes) > 1:
                names = short_names(classes, LONGEST_NAME)
                section.keys = list(zip((names[name] for name in classes), line_colours(len(classes)), strict=True))
        section.instead = of_columns(self.summary, self._score)
        return section if section.figures or section.instead else None

    def _data(self) -> Section:
        training, file = self.summary["training"], self.summary.get("table")
        section = Section("The data")
        if file is None:
            section.text.append(f"{word(training['rows'])} training rows of {training['columns']:,} columns.")
        else:
            section.text += [
                f"The file {shortened(Path(file['file']).name)} of {word(file['rows'])} rows; the target is "
                f"{shortened(file['target'])}. {self._rows_used(file)}",
                f"{len(file['columns']):,} columns, which become {training['inputs']:,} numbers.",
            ]
            section.tables.append(self._became(file["columns"]))
        if "classes" in training:
            names = short_names(training["classes"], LONGEST_NAME)
            listed = [names[name] for name in training["classes"]]
            more = f" and {len(listed) - SHOWN_NAMES:,} more" if len(listed) > SHOWN_NAMES else ""
            section.text.append(f"{len(listed):,} classes: {', '.join(listed[:SHOWN_NAMES])}{more}.")
        return section

    def _rows_used(self, file: dict[str, Any]) -> str:
        """Which rows the model knows, and which it is judged by."""
        training, test = self.summary["training"], self.summary.get("test")
        rows = training["rows"]
        later = " at first, and others came or went later" if training["stale"] else ""
        if test is None or not file.get("held_out"):
            judged = "" if test is None else f"; {test['rows']:,} are judged here"
            return f"{word(rows)} rows were trained on{later}{judged}."
        first = f"{word(rows)} rows were trained on, and the model was judged by {test['rows']:,} others"
        if not file["refitted"]:
            return f"{first}, which the saved model has not seen."
        return f"{first}; then it took these in too, so the saved model knows all {rows + test['rows']:,}."

    def _became(self, columns: list[dict[str, Any]]) -> Table:
        """What each column of a file became."""
        names = short_names([each["name"] for each in columns], LONGEST_NAME)
        head, keys = ["column", "kind", "columns for the network", "missing values"], ["kind", "width", "missing"]
        if all("missing_where_trained" in each for each in columns):
            head, keys = [*head[:3], "missing in the file", "where trained"], [*keys, "missing_where_trained"]
        rows = [[names[each["name"]], *(each[key] for key in keys)] for each in columns]
        return table("What each column became.", head, rows, most=SHOWN_COLUMNS)

    def _wrong(self) -> Section | None:
        test = self.summary.get("test") or {}
        section = Section("Where it is wrong")
        if "classes" in test:
            self._add_classes(section, test)
        elif "mean_absolute_error" in test:
            section.figures = self._figures("predicted", "residuals", "fifths", "coverage")
            self._add_intervals(section, test)
            section.tables.append(self._worst("Rows with the largest errors", ["true", "predicted"], test["worst"]))
        section.instead = of_tested(test)
        return section if section.figures or section.tables else None

    def _add_intervals(self, section: Section, test: dict[str, Any]) -> None:
        if "coverage" in test:
            caption = "Prediction intervals: the share of targets that should be inside, and that is."
            head, ways = ["coverage asked for", "found"], {0: shares, 1: shares}
            section.tables.append(table(caption, head, test["coverage"], ways=ways))
        if "fifths" in test:
            caption = "Intervals of 90% in each fifth of the test rows, from the lowest predictions to the highest."
            head = ["predictions from", "to", "rows", "coverage", "median width"]
            rows = [[each[key] for key in ("from", "to", "rows", "coverage", "width")] for each in test["fifths"]]
            section.tables.append(table(caption, head, rows, ways={3: shares} | alike(rows, 0, 1, hide=True)))

    def _worst(self, caption: str, head: list[str], rows: list[list[Any]]) -> Table:
        """The worst rows, with their values in the columns that matter most."""
        shown, ways = self.summary["test"].get("worst_values"), {0: as_given} | alike(rows, 1, 2, hide=True)
        ways |= dict.fromkeys(range(3, 1 + len(head)), shares)
        of_file = self.summary["test"]["numbers_of_file"]
        counted = "The first column is the row of the file." if of_file else "Test rows are counted from 0."
        head = ["row", *head]
        if shown is None:
            return table(f"{caption}. {counted}", head, rows, ways=ways)
        names = short_names(shown["columns"], SHORT_NAME)
        cut = partial(short_names, most=SHORT_NAME)
        values = [[cut([cell])[cell] if isinstance(cell, str) else cell for cell in row] for row in shown["rows"]]
        ways |= dict.fromkeys(range(len(head), len(head) + len(shown["columns"])), as_given)
        head = [*head, *(names[name] for name in shown["columns"])]
        joined = [[*row, *cells] for row, cells in zip(rows, values, strict=True)]
        caption = f"{caption}, with their values in the columns that matter most. {counted}"
        return table(caption, head, joined, ways=ways)

    def _add_classes(self, section: Section, test: dict[str, Any]) -> None:
        classes, worst = test["classes"], test.get("worst", [])
        section.figures = self._figures("confusion", "roc", "calibration")
        if test["confusion"] is None:
            section.text.append(
                f"With more than {MOST_CLASSES} classes the matrix of true and predicted ones is left out."
            )
        # test rows may have classes that the model does not know
        names = short_names([*(each["name"] for each in classes), *(row[1] for row in worst)], LONGEST_NAME)
        caption = "Precision and recall of each class."
        if len(classes) > SHOWN_CLASSES:
            caption = "Precision and recall of classes, those with the lowest recall first."
            classes = sorted(classes, key=lambda each: (each["recall"] is None, each["recall"]))
        rows = [[names[each["name"]], each["rows"], each["precision"], each["recall"]] for each in classes]
        head, ways = ["class", f"{self.row}s", "precision", "recall"], {2: shares, 3: shares}
        section.tables.append(table(caption, head, rows, most=SHOWN_CLASSES, ways=ways))
        if worst:
            head = ["true", "predicted", "its probability", "probability of the true one"]
            rows = [[k, names[truth], names[predicted], p, own] for k, truth, predicted, p, own in worst]
            section.tables.append(self._worst("Rows whose true class was given the lowest probability", head, rows))

    def _code(self) -> Section:
        return Section("The same in Python", code=self.summary["code"])

    def foot(self) -> str:
        return "Made with " + ", ".join(f"{name} {number}" for name, number in self.summary["versions"].items()) + "."


def _within(judged: dict[str, Any]) -> str | None:
    """The interval of a score."""
    ends = judged.get("interval")
    return None if ends is None else f"{share(ends[0])} to {share(ends[1])}"


def _plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    text = re.sub(r"[\\|*_`\[#]", r"\\\g<0>", text.replace("&", "&amp;").replace("<", "&lt;"))
    return " ".join(text.split())


def make_report(
    model: BaseEstimator, X: Array | None = None, y: Array | None = None, *, title: str | None = None, **about: Any
) -> Report:
    """A report on a fitted model; with test rows also on how good it is.

    Parameters
    ----------
    model : a fitted estimator
    X, y : test rows and their targets, optional
    title : str, optional
    image_shape : tuple, optional
        How to draw a row; by default rows that look like square images are drawn: 64 columns or more, without names,
        neighbours alike.
    code : str, optional
        What to say on how to make the same model, instead of the estimator and its parameters.
    table : dict, optional
        The file that the rows come from: {"file": str, "rows": int, "target": str, "columns": [{"name": str, "kind":
        str, "width": int, "missing": int}, ...]}. With "held_out" where the test rows are drawn from its rows, and
        "refitted" whether the model that is kept learns from them too afterwards.
    numbers : array of int, optional
        Of each test row the number of its row in that file.
    whole : dict, optional
        {"rows": int, "score": float} of all test rows, where X holds the first of them only.
    """
    return Report(summarise(model, X, y, **about), title or f"Report on a {type(model).__name__}")
