"""From a summary and its figures to text: HTML, Markdown, JSON."""

import html
import json
import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from .._arrays import Array
from .._base.extras import extra
from .._base.files import whole_file
from .figures import figures
from .summary import MOST_CLASSES, short_names, summarise

SHOWN_CANDIDATES = 40
SHOWN_COLUMNS = 60
SHOWN_CLASSES = 60
SHOWN_NAMES = 20

LONGEST_NAME = 30
"""Characters of a name in tables and sentences."""

CAPTIONS = {
    "spectrum": "Singular values of the scaled test rows; below the line they count as zero.",
    "importances": "How much each column moves the outputs when it changes by its standard deviation: mean squares of "
    "the network's gradient, all columns together 1.",
    "width_path": "Leave-one-out error of every width, from one factorisation; the band is one standard error.",
    "depth": "Candidates of the first round by depth, and the depth of the network that was chosen in the end.",
    "reconstruction": "Test rows above what each layer keeps of them.",
    "residuals": "Residuals.",
    "coverage": "Coverage of intervals.",
    "confusion": "Rows by true and predicted class.",
    "calibration": "How often predictions are right, against the probability they were given.",
}
"""What is written below each figure."""


@dataclass
class Table:
    caption: str
    head: list[str]
    rows: list[dict[str, Any]]
    note: str = ""


@dataclass
class Section:
    title: str
    text: list[str] = field(default_factory=list)
    figures: list[dict[str, Any]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    code: str = ""


def table(
    caption: str, head: list[str], rows: list[list[Any]], *, chosen: list[bool] | None = None, most: int | None = None
) -> Table:
    """A table of the first `most` rows, which says how many more there are."""
    marks = chosen or [False] * len(rows)
    words = [{"cells": [*map(_word, row)], "chosen": mark} for row, mark in zip(rows, marks, strict=True)]
    more = "" if most is None or len(rows) <= most else f"and {len(rows) - most:,} more."
    return Table(caption, head, words[:most], more)


def _word(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _name(name: str) -> str:
    return short_names([name], LONGEST_NAME)[name]


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
        """The same without figures."""
        return self._rendered("page.md.j2", trim_blocks=True, keep_trailing_newline=True)

    def _rendered(self, name: str, **settings: bool) -> str:
        jinja2 = extra("jinja2", "report", "A report")
        environment = jinja2.Environment(undefined=jinja2.StrictUndefined, **settings)
        environment.filters["plain"] = _plain
        template = environment.from_string((Path(__file__).parent / name).read_text())
        content = {"lead": self.lead(), "tiles": self.tiles(), "sections": self.sections(), "foot": self.foot()}
        return template.render(title=self.title, **content)

    def _repr_html_(self) -> str:
        page = html.escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:40rem;border:0"></iframe>'

    # --------------------------------------------------------------------------------------------- what it says

    def lead(self) -> str:
        training, network = self.summary["training"], self.summary["network"]
        widths = [training["columns"], *(layer["width"] for layer in network["layers"])]
        head = network.get("head")
        if head is not None and head["kind"] == "SHLN":
            widths.append(f"{head['width']} (head)")
        if "classes" in training:
            widths.append(len(training["classes"]))
        shape = "–".join(map(str, widths))
        return f"{self.summary['kind']}: a network {shape}, trained in closed form by pseudoinverse learning."

    def tiles(self) -> list[dict[str, str]]:
        training, test, file = self.summary["training"], self.summary.get("test"), self.summary.get("table")
        score = "accuracy" if "classes" in training else "R²"
        stale = " (before later changes)" if training["stale"] else ""
        numbers = {
            "training rows": training["rows"],
            "columns": training["columns"] if file is None else len(file["columns"]),
            **({f"{score} on {test['rows']:,} test rows": test["score"]} if test else {}),
            f"leave-one-out {score}{stale}": training["leave_one_out"],
            "seconds to fit": training["seconds"],
            "passes over the rows": training["passes"],
        }
        return [{"label": label, "value": _word(value)} for label, value in numbers.items() if value is not None]

    def sections(self) -> list[Section]:
        sections = [self._data(), self._network(), self._search(), self._layers(), self._test(), self._code()]
        return [section for section in sections if section is not None]

    def _figures(self, *names: str) -> list[dict[str, Any]]:
        """Those of the named figures that there are."""
        return [{"svg": self.figures[name], "caption": CAPTIONS[name]} for name in names if name in self.figures]

    def _data(self) -> Section:
        training, file, spectrum = self.summary["training"], self.summary.get("table"), self.summary.get("spectrum")
        section = Section("The data", figures=self._figures("spectrum"))
        if file is None:
            section.text.append(f"{_word(training['rows'])} training rows of {training['columns']:,} columns.")
        else:
            columns = file["columns"]
            section.text += [
                f"The file {_name(file['file'])} of {_word(file['rows'])} rows; the target is {_name(file['target'])}. "
                f"{_word(training['rows'])} rows were trained on.",
                f"{len(columns):,} columns, which become {training['columns']:,} numbers.",
            ]
            names = short_names([each["name"] for each in columns], LONGEST_NAME)
            rows = [[names[each["name"]], each["kind"], each["missing"]] for each in columns]
            head = ["column", "kind", "missing values"]
            section.tables.append(table("Columns of the file.", head, rows, most=SHOWN_COLUMNS))
        if "classes" in training:
            names = short_names(training["classes"], LONGEST_NAME)
            listed = [names[name] for name in training["classes"]]
            more = f" and {len(listed) - SHOWN_NAMES:,} more" if len(listed) > SHOWN_NAMES else ""
            section.text.append(f"{len(listed):,} classes: {', '.join(listed[:SHOWN_NAMES])}{more}.")
        if spectrum is not None:
            section.text.append(
                f"{_word(spectrum['rows'])} test rows, their columns brought to one scale, have rank "
                f"{spectrum['rank']} of {len(spectrum['values'])}."
            )
        return section

    def _network(self) -> Section:
        network = self.summary["network"]
        rows: list[list[Any]] = [
            [f"layer {k}", layer["width"], layer["activation"], layer["input_rank"], layer["reconstruction_error"]]
            for k, layer in enumerate(network["layers"], 1)
        ]
        head = network.get("head")
        text = [f"Input scaling: {network['input_scaling']}."]
        if head is not None:
            rows.append([f"head: {head['kind']}", head["width"], head.get("activation"), None, None])
            if head.get("ridge") is not None:
                links = ", with direct links from the input" if head["direct_links"] else ""
                text.append(f"Output ridge {_word(head['ridge'])} per unit of weight{links}.")
        caption = "Layers, from input to output."
        if network["layers"]:
            caption += (
                " The error of a layer's own decoder is that with which it gave back the layer's own input (for later "
                "layers: the features below), on training rows while the layer was fitted and before its weights were "
                "tied; relative to the squared size of that input."
            )
        columns = ["", "neurons", "activation", "rank of its input", "error of its own decoder"]
        return Section("The network", text, tables=[table(caption, columns, rows)])

    def _search(self) -> Section | None:
        search = self.summary["search"]
        section = Section("Why this network", figures=self._figures("width_path", "depth", "importances"))
        if search:
            last = max(row["round"] for row in search)
            section.text.append(
                f"{len(search)} candidates were compared by the leave-one-out loss of their output layer on training "
                "rows that are not neurons themselves and had no part in a metric; the lowest was taken (highlighted), "
                "and of equal ones the simpler. Rounds say how often the labels have shaped a candidate's metric."
            )
            if last > 1:
                section.text.append(
                    "In the first round every candidate was tried, with few neurons and on a small sample of the rows; "
                    "in later ones the best few again, with more neurons and, where there are enough, on more rows: "
                    "the last decided. Losses of different rounds come from different rows and are not to be compared."
                )
            section.tables = [self._round(number, last) for number in range(last, 0, -1)]
        return section if search or section.figures else None

    def _round(self, number: int, last: int) -> Table:
        rows = [row for row in self.summary["search"] if row["round"] == number]
        rows.sort(key=lambda row: float(row["loss"]))
        keys = ["input_scaling", "depth", "skip", "branches", "head", "neurons", "encoder_ridge", "activation"]
        keys += ["direct", "length", "rounds", "width", "loss", "standard_error"]
        name = {last: "The last round", 1: "The first round"}.get(number, "The round between")
        name = "The only round" if last == 1 else name
        return table(
            f"{name}: {len(rows)} candidates on {_word(rows[0]['rows'])} training rows, the best first.",
            [*(key.replace("_", " ") for key in keys[:-1]), "± standard error"],
            [[row[key] for key in keys] for row in rows],
            chosen=[bool(row["chosen"]) for row in rows],
            most=SHOWN_CANDIDATES,
        )

    def _layers(self) -> Section | None:
        kept = self.summary.get("reconstruction")
        if kept is None:
            return None
        rows = [[f"layer {each['layer']}", each["error"]] for each in kept["layers"]]
        text = [
            "How much of the scaled input is still in the features of each layer: a linear map from these features "
            "straight back to the scaled input is fitted on one half of the test rows and judged on the other. It is "
            "not the decoder of the table above, which gives back the input of its own layer only."
        ]
        caption = (
            "Squared error of that linear map, relative to that of the mean: 0 where a layer keeps everything, 1 where "
            "it keeps nothing."
        )
        tables = [table(caption, ["", "error"], rows)]
        return Section("What the layers keep", text, self._figures("reconstruction"), tables)

    def _test(self) -> Section | None:
        test = self.summary.get("test")
        if test is None:
            return None
        if "classes" in test:
            return self._classes(test)
        if "classes" in self.summary["training"]:
            return Section("On test rows", [f"Accuracy {_word(test['score'])}, of whole sets of labels."])
        section = Section("On test rows", [f"R² {_word(test['score'])}."], self._figures("residuals", "coverage"))
        if test["score"] is None:
            section.text = ["One row has no R², which compares with the mean of the rows."]
        if "coverage" in test:
            caption = "Prediction intervals: the share of targets that should be inside, and that is."
            section.tables.append(table(caption, ["coverage asked for", "found"], test["coverage"]))
        if "mean_absolute_error" in test:
            section.text.append(f"Mean absolute error {_word(test['mean_absolute_error'])}.")
            head = [self._row_head(), "true", "predicted"]
            section.tables.append(table("Rows with the largest errors.", head, test["worst"]))
        return section

    def _classes(self, test: dict[str, Any]) -> Section:
        text, classes = [f"Accuracy {_word(test['score'])}."], test["classes"]
        if "log_loss" in test:
            text[0] += f" Log-loss {_word(test['log_loss'])}; calibration error {_word(test['calibration']['error'])}."
        if test["confusion"] is None:
            text.append(f"With more than {MOST_CLASSES} classes the matrix of true and predicted ones is left out.")
        worst = test.get("worst", [])
        # test rows may have classes that the model does not know
        names = short_names([*(each["name"] for each in classes), *(row[1] for row in worst)], LONGEST_NAME)
        caption = "Precision and recall of each class."
        if len(classes) > SHOWN_CLASSES:
            caption = "Precision and recall of classes, those with the lowest recall first."
            classes = sorted(classes, key=lambda each: (each["recall"] is None, each["recall"]))
        rows = [[names[each["name"]], each["rows"], each["precision"], each["recall"]] for each in classes]
        tables = [table(caption, ["class", "rows", "precision", "recall"], rows, most=SHOWN_CLASSES)]
        if worst:
            head = [self._row_head(), "true", "predicted", "its probability", "probability of the true one"]
            rows = [[k, names[truth], names[predicted], p, own] for k, truth, predicted, p, own in worst]
            tables.append(table("Rows whose true class was given the lowest probability.", head, rows))
        return Section("On test rows", text, self._figures("confusion", "calibration"), tables)

    def _row_head(self) -> str:
        return "row of the file" if self.summary["test"]["numbers_of_file"] else "test row"

    def _code(self) -> Section:
        return Section("The same in Python", code=self.summary["code"])

    def foot(self) -> str:
        return "Made with " + ", ".join(f"{name} {number}" for name, number in self.summary["versions"].items()) + "."


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
        str, "missing": int}, ...]}.
    numbers : array of int, optional
        Of each test row the number of its row in that file.
    """
    return Report(summarise(model, X, y, **about), title or f"Report on a {type(model).__name__}")
