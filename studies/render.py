"""Tables into pages: what stands between <!-- name --> and <!-- /name --> comes from results, all else from people.

A study says in its pages.py which tables stand in which page, and in its pictures.py what is drawn from which results;
`python -m studies render` writes all of them.
"""

import hashlib
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = Mapping[str, Callable[[], str]]
"""By the name of their marks."""

ROOT = Path(__file__).parents[1]


class Picture(NamedTuple):
    """A picture of a page, drawn from results."""

    draw: "Callable[[Figure], None]"
    size: tuple[float, float]
    """Inches."""
    results: tuple[Path, ...]

    @property
    def source(self) -> str:
        """What stands in the picture's file of what it was drawn from: files of results with their hashes."""
        return "; ".join(
            f"{path.relative_to(ROOT).as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"
            for path in self.results
        )

    def write(self, path: Path) -> None:
        import matplotlib as mpl
        from matplotlib.figure import Figure

        figure = Figure(figsize=self.size, layout="constrained")
        with mpl.rc_context({"svg.hashsalt": "pilae", "font.size": 10}):  # the same file from the same numbers
            self.draw(figure)
            figure.savefig(path, format="svg", metadata={"Date": None, "Source": self.source})


Pictures = Mapping[str, Picture]
"""By their files, seen from the root of the repository."""


def named(*tables: Callable[[], str]) -> Tables:
    """Tables whose marks are the names of their functions."""
    return {table.__name__: table for table in tables}


def rendered(text: str, tables: Tables) -> str:
    """A page with the tables of today's results."""
    for name, make in tables.items():
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, opened, rest = text.partition(start)
        _, closed, after = rest.partition(end)
        if not (opened and closed):
            raise ValueError(f"There is no place for the table {name!r}: write {start} and {end} where it is to stand.")
        text = f"{before}{start}\n{make()}\n{end}{after}"
    return text


def write(pages: Mapping[str, Tables], pictures: Pictures) -> None:
    for page, tables in pages.items():
        path = ROOT / page
        path.write_text(rendered(path.read_text(), tables))
    for name, picture in pictures.items():
        picture.write(ROOT / name)


def table(head: str, rows: Iterable[Mapping[str, Any] | Sequence[str]], line: str = "", known: int = 0) -> str:
    """A table as Markdown: the titles, and below them the rows, which are cells, or figures that `line` shows.

    `line` is a format string: "{name} | {seconds:.1f} | {test_accuracy:.4f}"; None is a dash, and there are formats of
    our own (`FORMATS`). A row with the key "missing" has the first `known` columns and no others.
    """
    width, columns = head.count(" | ") + 1, line.split(" | ")
    lines = [head, " | ".join(["---"] * width)]
    for row in rows:
        if isinstance(row, Mapping):
            lacking = "missing" in row
            row = [_fields.vformat(column, (), row) for column in (columns[:known] if lacking else columns)]
            row += ["not available here"] * lacking
        lines.append(" | ".join([*row, *[""] * (width - len(row))]))
    return "\n".join(f"| {text} |" for text in lines)


def rows(cases: Mapping[str, Mapping]) -> list[dict]:
    """Cases as rows that know their name."""
    return [{"name": name, **case} for name, case in cases.items()]


# --- numbers ---


def number(value: float | None) -> str:
    """Three digits, or all before the point."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def per_cent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"


def spread(values: Sequence[float]) -> str:
    """Mean and deviation of accuracies, in per cent."""
    return per_cent(mean(values)) + (f" ± {100 * stdev(values):.2f}" if len(values) > 1 else "")


def gigabytes(megabytes: float, digits: int = 2) -> str:
    return f"{megabytes * 2**20 / 1e9:.{digits}f} GB"


FORMATS: dict[str, Callable[[Any], str]] = {
    "short": number,
    "pc": per_cent,
    "spread": spread,
    "GB": gigabytes,
    "list": lambda values: ", ".join(map(str, values)),
}


class _Fields(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            return "-"
        return FORMATS[format_spec](value) if format_spec in FORMATS else format(value, format_spec)


_fields = _Fields()


# --- where figures come from ---


def place(machine: Mapping) -> str:
    return f"{machine['cores']} cores of {machine['cpu']}"


def commits(machine: Mapping, cases: Iterable[Mapping] = ()) -> str:
    """The commits that cases were measured at: one may have been measured again later."""
    found = sorted({case.get("commit", machine["commit"]) for case in cases} or {machine["commit"]})
    return ("commit " if len(found) == 1 else "commits ") + ", ".join(found)


def made(command: str, machine: Mapping, cases: Iterable[Mapping] = ()) -> str:
    """The line under a table."""
    return f"Made by `{command}` on {place(machine)}, at {commits(machine, cases)}."
