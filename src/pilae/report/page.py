"""From a summary and its figures to text: HTML, Markdown, JSON."""

import html
import json
import os
import re
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from .._arrays import Array
from .._base.extras import extra
from .._base.files import whole_file
from .figures import figures
from .parts import LONGEST_NAME, SHORT_NAME, Picture, Section, Table, shortened, table, word
from .summary import short_names, summarise
from .tested import MOST_CLASSES
from .words import CAPTIONS, GLOSSARY, candidate_words

SHOWN_CANDIDATES = 40
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
        """The same without figures."""
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
        widths = [training["columns"], *(layer["width"] for layer in network["layers"])]
        head = network.get("head")
        if head is not None and head["kind"] == "SHLN":
            widths.append(f"{head['width']} (head)")
        if "classes" in training:
            widths.append(len(training["classes"]))
        shape = "–".join(map(str, widths))
        return f"{self.summary['kind']}: a network {shape}, trained in closed form by pseudoinverse learning."

    @property
    def _score(self) -> str:
        return "accuracy" if "classes" in self.summary["training"] else "R²"

    def tiles(self) -> list[dict[str, str]]:
        training, test, file = self.summary["training"], self.summary.get("test"), self.summary.get("table")
        stale = " (before later changes)" if training["stale"] else ""
        numbers = {
            **({f"{self._score} on {test['rows']:,} test rows": test["score"]} if test else {}),
            f"leave-{'group' if training.get('grouped') else 'one'}-out {self._score}{stale}": training[
                "leave_one_out"
            ],
            "training rows": training["rows"],
            "columns": training["columns"] if file is None else len(file["columns"]),
            "seconds to fit": training["seconds"],
        }
        return [{"label": label, "value": word(value)} for label, value in numbers.items() if value is not None]

    def sections(self) -> list[Section]:
        sections = [
            self._how_good(),
            self._columns_that_matter(),
            self._wrong(),
            self._data(),
            self._network(),
            self._search(),
            self._layers(),
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
        linear, interval = training.get("linear"), test.get("interval")
        within = None if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"
        rows: list[list[Any]] = [["this model", test.get("score"), within, training["leave_one_out"]]]
        if linear is not None:
            rows.append(["a linear model of the same columns", None, None, linear["score"]])
        if "guess" in test:
            guess = f"always “{shortened(test['guess_class'])}”" if "guess_class" in test else "the mean of all rows"
            rows.append([f"guessing: {guess}", test["guess"], None, None])
        if len(rows) > 1 or test:
            caption = f"1 is perfect. Leave-one-out: each training {self.row} by an output layer that has not seen it."
            section.tables.append(
                table(caption, [self._score, f"on test {self.row}s", "95% interval", "by leave-one-out"], rows)
            )
        section.text += self._more_scores(test)
        return section if section.tables else None

    def _more_scores(self, test: dict[str, Any]) -> list[str]:
        if test and test["score"] is None:
            return ["One row has no R², which compares with the mean of the rows."]
        if "mean_absolute_error" in test:
            return [f"Mean absolute error {word(test['mean_absolute_error'])}."]
        if "log_loss" in test:
            error = test["calibration"]["error"]
            return [f"Log-loss {word(test['log_loss'])}; calibration error {word(error)}."]
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
            section.text.append(
                f"The small figures: {what.lower()}{of_one} when all rows have the same value in one column, whatever "
                "else they hold. It says what the model does, not what causes what."
            )
        return section if section.figures else None

    def _data(self) -> Section:
        training, file = self.summary["training"], self.summary.get("table")
        section = Section("The data")
        if file is None:
            section.text.append(f"{word(training['rows'])} training rows of {training['columns']:,} columns.")
        else:
            test = self.summary.get("test")
            judged = "" if test is None else f", {test['rows']:,} are judged here"
            section.text += [
                f"The file {shortened(Path(file['file']).name)} of {word(file['rows'])} rows; the target is "
                f"{shortened(file['target'])}. {word(training['rows'])} rows were trained on{judged}.",
                f"{len(file['columns']):,} columns, which become {training['columns']:,} numbers.",
            ]
            section.tables.append(self._became(file["columns"]))
        if "classes" in training:
            names = short_names(training["classes"], LONGEST_NAME)
            listed = [names[name] for name in training["classes"]]
            more = f" and {len(listed) - SHOWN_NAMES:,} more" if len(listed) > SHOWN_NAMES else ""
            section.text.append(f"{len(listed):,} classes: {', '.join(listed[:SHOWN_NAMES])}{more}.")
        return section

    def _became(self, columns: list[dict[str, Any]]) -> Table:
        """What each column of a file became."""
        names = short_names([each["name"] for each in columns], LONGEST_NAME)
        head, keys = ["column", "kind", "columns for the network", "missing values"], ["kind", "width", "missing"]
        if all("missing_where_trained" in each for each in columns):
            head, keys = [*head[:3], "missing in the file", "where trained"], [*keys, "missing_where_trained"]
        rows = [[names[each["name"]], *(each[key] for key in keys)] for each in columns]
        return table("What each column became.", head, rows, most=SHOWN_COLUMNS)

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
                text.append(f"Output ridge {word(head['ridge'])} per unit of weight{links}.")
        caption = "Layers, from input to output."
        if network["layers"]:
            caption += (
                " The error of a layer's own decoder is that with which it gave back the layer's own input (for later "
                "layers: the features below), on training rows while the layer was fitted and before its weights were "
                "tied; relative to the squared size of that input."
            )
        columns = ["", "neurons", "activation", "rank of its input", "error of its own decoder"]
        spectrum = self.summary.get("spectrum")
        if spectrum is not None:
            text.append(
                f"{word(spectrum['rows'])} test rows, their columns brought to one scale, have rank "
                f"{spectrum['rank']} of {len(spectrum['values'])}."
            )
        tables = [table(caption, columns, rows)]
        return Section("The network", text, self._figures("spectrum"), tables, folded=True)

    def _search(self) -> Section | None:
        search = [row for row in self.summary["search"] if row["loss"] is not None]
        untried = self.summary["search"][len(search) :]
        section = Section("What was searched", figures=self._figures("width_path", "depth"), folded=True)
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
            section.tables = [self._round(search, number, last) for number in range(last, 0, -1)]
            if untried:
                section.text.append(
                    f"The time that was given was used up: at least {len(untried)} more candidates would have come. "
                    "The best so far was taken."
                )
                left = [[candidate_words(row), row["round"]] for row in untried]
                section.tables.append(table("Not tried.", ["candidate", "round"], left, most=SHOWN_CANDIDATES))
            section.glossary = GLOSSARY
        return section if search or section.figures else None

    def _round(self, search: list[dict[str, Any]], number: int, last: int) -> Table:
        rows = sorted((row for row in search if row["round"] == number), key=lambda row: float(row["loss"]))
        name = {last: "The last round", 1: "The first round"}.get(number, "The round between")
        name = "The only round" if last == 1 else name
        return table(
            f"{name}: {len(rows)} candidates on {word(rows[0]['rows'])} training rows, the best first.",
            ["candidate", "width", "loss", "± standard error"],
            [[candidate_words(row), *(row[key] for key in ("width", "loss", "standard_error"))] for row in rows],
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
        return Section("What the layers keep", text, self._figures("reconstruction"), tables, folded=True)

    def _wrong(self) -> Section | None:
        test = self.summary.get("test") or {}
        section = Section("Where it is wrong")
        if "classes" in test:
            self._add_classes(section, test)
        elif "mean_absolute_error" in test:
            section.figures = self._figures("predicted", "residuals", "fifths", "coverage")
            self._add_intervals(section, test)
            head = [self._row_head(), "true", "predicted"]
            section.tables.append(self._worst("Rows with the largest errors", head, test["worst"]))
        return section if section.figures or section.tables else None

    def _add_intervals(self, section: Section, test: dict[str, Any]) -> None:
        if "coverage" in test:
            caption = "Prediction intervals: the share of targets that should be inside, and that is."
            section.tables.append(table(caption, ["coverage asked for", "found"], test["coverage"]))
        if "fifths" in test:
            caption = "Intervals of 90% in each fifth of the test rows, from the lowest predictions to the highest."
            head = ["predictions from", "to", "rows", "coverage", "median width"]
            rows = [[each[key] for key in ("from", "to", "rows", "coverage", "width")] for each in test["fifths"]]
            section.tables.append(table(caption, head, rows))

    def _worst(self, caption: str, head: list[str], rows: list[list[Any]]) -> Table:
        """The worst rows, with their values in the columns that matter most."""
        shown = self.summary["test"].get("worst_values")
        if shown is None:
            return table(f"{caption}.", head, rows)
        names = short_names(shown["columns"], SHORT_NAME)
        cut = partial(short_names, most=SHORT_NAME)
        values = [[cut([cell])[cell] if isinstance(cell, str) else cell for cell in row] for row in shown["rows"]]
        head = [*head, *(names[name] for name in shown["columns"])]
        joined = [[*row, *cells] for row, cells in zip(rows, values, strict=True)]
        return table(f"{caption}, with their values in the columns that matter most.", head, joined)

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
        section.tables.append(
            table(caption, ["class", f"{self.row}s", "precision", "recall"], rows, most=SHOWN_CLASSES)
        )
        if worst:
            head = [self._row_head(), "true", "predicted", "its probability", "probability of the true one"]
            rows = [[k, names[truth], names[predicted], p, own] for k, truth, predicted, p, own in worst]
            section.tables.append(self._worst("Rows whose true class was given the lowest probability", head, rows))

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
        str, "width": int, "missing": int}, ...]}.
    numbers : array of int, optional
        Of each test row the number of its row in that file.
    whole : dict, optional
        {"rows": int, "score": float} of all test rows, where X holds the first of them only.
    """
    return Report(summarise(model, X, y, **about), title or f"Report on a {type(model).__name__}")
