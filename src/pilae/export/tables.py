"""Raw columns of a table as inputs of a graph, and what `Table` makes of them.

Days are counted and dates taken apart in float64, whose whole numbers are exact: the civil calendar in eras of 400
years that begin with a March, as the leap day is then the last of its year.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from .._base.sentences import listed
from .._data.columns import Columns
from .._data.dates import DateColumn
from .._data.tables import TRUTH, CategoryColumn, EmptyColumn, NumberColumn, Table, TableColumn
from .._data.text import TextColumn
from .._data.written import WrittenColumn
from .graph import FLOAT32, INT64, STRING, Graph

RESULTS = ("label", "probabilities", "prediction", "features")
"""Names that inputs must not have."""

ML = "ai.onnx.ml"

NO_DATE = np.iinfo(np.int64).min
"""What stands for a gap among dates, as NumPy has it."""

ERA_DAYS, ERA_YEARS, ERA_START = 146_097.0, 400.0, 719_468.0
"""Days and years of an era, and the days from the start of the first to 1970."""


class Input(NamedTuple):
    """An input of a graph: one column, a value for each row."""

    name: str
    dtype: int

    @property
    def words(self) -> str:
        """What to give, for people."""
        return {FLOAT32: "float", STRING: "string", INT64: "int64, seconds since 1970"}[self.dtype]


def inputs_of(columns: Columns) -> list[Input]:
    """One input for each column; columns without a value need none."""
    names = np.arange(columns.count).astype(str) if columns.names is None else columns.names
    if columns.table is None:
        return [Input(_free(str(name)), FLOAT32) for name in names]
    free = [column.name for column in columns.table.columns if isinstance(column, TextColumn)]
    if free:
        which, hold, them = ("Column", "holds", "it") if len(free) == 1 else ("Columns", "hold", "them")
        raise ValueError(
            f"{which} {listed(free)} {hold} free text, whose pieces an ONNX graph cannot look up: fit a model without "
            f"{them} (pilae fit --exclude names columns to leave out), or keep this one in Python."
        )
    each = zip(names, columns.table.columns, strict=True)
    return [Input(_free(str(name)), _dtype(column)) for name, column in each if not isinstance(column, EmptyColumn)]


def _free(name: str) -> str:
    return f"column {name}" if name in RESULTS else name


def _dtype(column: TableColumn) -> int:
    if isinstance(column, NumberColumn):
        return STRING if column.kind == "truth values" else FLOAT32
    if isinstance(column, WrittenColumn):
        return FLOAT32
    if isinstance(column, DateColumn):
        return INT64
    return STRING


def rows_of(graph: Graph, table: Table | None, inputs: Iterable[Input]) -> str:
    """The numbers that the table makes of its columns, side by side."""
    if table is None:
        return graph.inside(graph.side_by_side([each.name for each in inputs]))
    made = [column for column in table.columns if not isinstance(column, EmptyColumn)]
    return graph.side_by_side([_numbers(graph, column, each.name) for column, each in zip(made, inputs, strict=True)])


def _numbers(graph: Graph, column: TableColumn, x: str) -> str:
    if isinstance(column, DateColumn):
        parts = _date_parts(graph, x)
        return graph.side_by_side([parts[part] for part in column.parts])
    if isinstance(column, CategoryColumn):
        codes = {str(value): float(code) for code, value in enumerate(column.values)}
        return _looked_up(graph, x, {"": np.nan} | codes, -1.0)
    if column.kind == "truth values":
        words = {write(word): number for word, number in TRUTH.items() for write in (str.lower, str.upper, str.title)}
        return _looked_up(graph, x, words, np.nan)
    return graph.inside(x)


def _looked_up(graph: Graph, x: str, words: dict[str, float], other: float) -> str:
    """The number of each word."""
    given = {"keys_strings": [*words], "values_floats": [*words.values()], "default_float": other}
    return graph.inside(graph.op("LabelEncoder", x, domain=ML, **given))


def _date_parts(graph: Graph, x: str) -> dict[str, str]:
    """`date_parts` of seconds since 1970."""
    gap = graph.op("Equal", x, graph.integers(NO_DATE))
    seconds = graph.inside(graph.op("Where", gap, graph.integers(0), x))
    day = _whole(graph, seconds, 86_400.0)
    era = _whole(graph, graph.op("Add", day, ERA_START), ERA_DAYS)
    of_era = graph.op("Sub", graph.op("Add", day, ERA_START), graph.op("Mul", era, ERA_DAYS))
    # of the days of an era those that leap years add are taken out: 365 days a year are left
    leap = [_whole(graph, of_era, days) for days in (1460.0, 36_524.0, 146_096.0)]
    plain = graph.op("Sub", graph.op("Add", graph.op("Sub", of_era, leap[0]), leap[1]), leap[2])
    year = _whole(graph, plain, 365.0)
    before = graph.op("Sub", graph.op("Mul", year, 365.0), _whole(graph, year, 100.0))
    of_year = graph.op("Sub", of_era, graph.op("Add", before, _whole(graph, year, 4.0)))
    march = _whole(graph, graph.op("Add", graph.op("Mul", of_year, 5.0), 2.0), 153.0)  # months since March
    length = _whole(graph, graph.op("Add", graph.op("Mul", march, 153.0), 2.0), 5.0)
    next_year = graph.op("GreaterOrEqual", march, graph.constant(10.0))
    month = graph.op("Sub", graph.op("Add", march, 3.0), graph.op("Mul", graph.inside(next_year), 12.0))
    weekday = graph.op("Add", day, 3.0)
    time = graph.op("Sub", seconds, graph.op("Mul", day, 86_400.0))
    parts = {
        "days": graph.op("Div", seconds, 86_400.0),
        "year": graph.op("Add", graph.op("Add", year, graph.op("Mul", era, ERA_YEARS)), graph.inside(next_year)),
        "month": month,
        "day": graph.op("Add", graph.op("Sub", of_year, length), 1.0),
        "weekday": graph.op("Sub", weekday, graph.op("Mul", _whole(graph, weekday, 7.0), 7.0)),
        "hour": graph.op("Div", _whole(graph, time, 60.0), 60.0),
    }
    return {name: graph.op("Where", gap, np.nan, value) for name, value in parts.items()}


def _whole(graph: Graph, x: str, unit: float) -> str:
    """How many whole units x has, rounded down."""
    return graph.op("Floor", graph.op("Div", x, unit))
