"""From a summary and its figures to text: HTML, Markdown, JSON."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..save import whole_file
from .figures import figures
from .summary import summarise

SHOWN_CANDIDATES = 40


@dataclass
class Table:
    head: list[str]
    rows: list[dict[str, Any]]


@dataclass
class Section:
    title: str
    text: list[str] = field(default_factory=list)
    figures: list[dict[str, Any]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    code: str = ""


def table(head: list[str], rows: list[list[Any]], chosen: list[bool] | None = None) -> Table:
    marks = chosen or [False] * len(rows)
    return Table(head, [{"cells": [_word(c) for c in row], "chosen": m} for row, m in zip(rows, marks, strict=True)])


def _word(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


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
        """Write the report, whole or not at all: HTML, or Markdown or JSON for paths that end in .md or .json."""
        path = Path(path)
        ways = {".md": self.to_markdown, ".json": self.to_json}
        text = ways.get(path.suffix.lower(), self.to_html)()
        with whole_file(path) as file:
            file.write(text.encode())

    def to_json(self) -> str:
        return json.dumps(self.summary, indent=1, allow_nan=False) + "\n"

    def to_html(self) -> str:
        """One page with everything in it: no script, nothing from elsewhere; what users named is escaped."""
        try:
            import jinja2
            import markupsafe
        except ImportError as error:
            raise ImportError("A report needs jinja2; install it with: pip install 'pilae[report]'") from error
        source = (Path(__file__).parent / "page.html.j2").read_text()
        template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(source)
        sections = self.sections()
        for section in sections:
            for each in section.figures:
                each["svg"] = markupsafe.Markup(each["svg"])  # made by matplotlib, which escapes text itself
        return template.render(
            title=self.title, lead=self.lead(), tiles=self.tiles(), sections=sections, foot=self.foot()
        )

    def _repr_html_(self) -> str:
        import html

        page = html.escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:40rem;border:0"></iframe>'

    def to_markdown(self) -> str:
        """The same without figures."""
        lines = [f"# {_plain(self.title)}", "", self.lead(), ""]
        lines += [f"- {tile['label']}: **{_plain(tile['value'])}**" for tile in self.tiles()]
        for section in self.sections():
            lines += ["", f"## {section.title}", "", *map(_plain, section.text)]
            for each in section.tables:
                lines += ["", "| " + " | ".join(each.head) + " |", "|" + " --- |" * len(each.head)]
                lines += ["| " + " | ".join(_plain(cell) for cell in row["cells"]) + " |" for row in each.rows]
            if section.code:
                lines += ["", "```python", section.code, "```"]
        return "\n".join([*lines, "", self.foot(), ""])

    # --------------------------------------------------------------------------------------------- what it says

    def lead(self) -> str:
        training, network = self.summary["training"], self.summary["network"]
        widths = [str(layer["width"]) for layer in network["layers"]]
        head = network.get("head")
        if head is not None and head["width"] is not None and head["kind"] == "SHLN":
            widths.append(f"{head['width']} (head)")
        outputs = len(training["classes"]) if "classes" in training else None
        shape = "–".join([str(training["columns"]), *widths, *([] if outputs is None else [str(outputs)])])
        return f"{self.summary['kind']}: a network {shape}, trained in closed form by pseudoinverse learning."

    def tiles(self) -> list[dict[str, str]]:
        training, test = self.summary["training"], self.summary.get("test", {})
        score = "accuracy" if "classes" in training else "R²"
        found = [("training rows", training["rows"]), ("columns", training["columns"])]
        if test:
            found.append((f"{score} on {test['rows']:,} test rows", test["score"]))
        stale = " (before later changes)" if training["stale"] else ""
        found += [
            (f"leave-one-out {score}{stale}", training["leave_one_out"]),
            ("seconds to fit", training["seconds"]),
            ("passes over the rows", training["passes"]),
        ]
        return [{"label": label, "value": _word(value)} for label, value in found if value is not None]

    def sections(self) -> list[Section]:
        made = [self._data(), self._network(), self._search(), self._layers(), self._test(), self._code()]
        return [section for section in made if section is not None]

    def _figure(self, name: str, caption: str) -> list[dict[str, Any]]:
        return [{"svg": self.figures[name], "caption": caption}] if name in self.figures else []

    def _data(self) -> Section:
        training, spectrum = self.summary["training"], self.summary.get("spectrum")
        text = [f"{_word(training['rows'])} training rows of {training['columns']} columns."]
        if "classes" in training:
            names = training["classes"]
            text.append(f"{len(names)} classes: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}.")
        figures = []
        if spectrum is not None:
            text.append(f"Rank {spectrum['rank']} of {len(spectrum['values'])} in {spectrum['rows']} of the test rows.")
            figures = self._figure("spectrum", "Singular values of the test rows; below the line they count as zero.")
        return Section("The data", text, figures)

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
                text.append(f"Output ridge {head['ridge']:.3g} per unit of weight{links}.")
        columns = ["", "neurons", "activation", "rank of its input", "reconstruction error"]
        return Section("The network", text, tables=[table(columns, rows)])

    def _search(self) -> Section | None:
        search = self.summary["search"]
        if not search and "width_path" not in self.figures:
            return None
        text, tables = [], []
        if search:
            rows = sorted(search, key=lambda row: (-row["round"], row["loss"]))[:SHOWN_CANDIDATES]  # the last decided
            keys = (
                "round",
                "input_scaling",
                "depth",
                "head",
                "neurons",
                "encoder_ridge",
                "activation",
                "direct",
                "width",
            )
            tables.append(
                table(
                    [*(key.replace("_", " ") for key in keys), "loss", "± standard error"],
                    [[*(row[key] for key in keys), row["loss"], row["standard_error"]] for row in rows],
                    [bool(row["chosen"]) for row in rows],
                )
            )
            text.append(
                f"{len(search)} candidates were compared by the leave-one-out loss of their output layer on training "
                "rows that are not neurons themselves; the lowest was taken (highlighted)."
            )
        figures = self._figure(
            "width_path", "Leave-one-out error of every width, from one factorisation; the band is one standard error."
        ) + self._figure("depth", "Candidates by depth.")
        return Section("Why this network", text, figures, tables)

    def _layers(self) -> Section | None:
        found = self.summary.get("reconstruction")
        if found is None:
            return None
        rows = [[f"layer {each['layer']}", each["error"]] for each in found["layers"]]
        text = ["Relative squared error with which a linear map rebuilds test rows from the features of each layer."]
        caption = "Test rows above what each layer keeps of them."
        return Section(
            "What the layers keep", text, self._figure("reconstruction", caption), [table(["", "error"], rows)]
        )

    def _test(self) -> Section | None:
        test = self.summary.get("test")
        if test is None:
            return None
        if "classes" in test:
            text = [f"Log-loss {test['log_loss']:.4f}; calibration error {test['calibration']['error']:.4f}."]
            rows = [[each[key] for key in ("name", "rows", "precision", "recall")] for each in test["classes"]]
            worst = [[k, truth, said, p, own] for k, truth, said, p, own in test["worst"]]
            tables = [
                table(["class", "rows", "precision", "recall"], rows),
                table(["worst rows", "true", "predicted", "its probability", "probability of the true one"], worst),
            ]
            figures = self._figure("confusion", "Rows by true and predicted class.") + self._figure(
                "calibration", "How often predictions are right, against the probability they were given."
            )
            return Section("On test rows", text, figures, tables)
        text, tables = [f"R² {test.get('r2', test['score']):.4f}."], []
        if "mean_absolute_error" in test:
            text.append(f"Mean absolute error {test['mean_absolute_error']:.4g}.")
            tables.append(table(["worst rows", "true", "predicted"], test["worst"]))
        if "coverage" in test:
            tables.insert(0, table(["intervals: coverage asked for", "found"], test["coverage"]))
        figures = self._figure("residuals", "Residuals.") + self._figure("coverage", "Coverage of intervals.")
        return Section("On test rows", text, figures, tables)

    def _code(self) -> Section:
        return Section("The same in Python", code=self.summary["code"])

    def foot(self) -> str:
        return "Made with " + ", ".join(f"{name} {number}" for name, number in self.summary["versions"].items()) + "."


def _plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    for mark in ("\\", "|", "*", "_", "`", "<", "[", "#"):
        text = text.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return " ".join(text.split())


def make_report(
    model: Any, X: Any = None, y: Any = None, *, title: str | None = None, image_shape: tuple[int, ...] | None = None
) -> Report:
    """A report on a fitted model; with test rows also on how good it is."""
    summary = summarise(model, X, y, image_shape=image_shape)
    return Report(summary, title or f"Report on a {type(model).__name__}")
