"""What the columns of a table become: numbers, categories, dates, text; from Python and from the command line."""

import hashlib
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

from helpers import close, rounding, tolerance
from pilae import SHLN, PILAEClassifier, PILAERegressor, cli, load, scan_blocks, scan_csv, scan_parquet
from pilae._base.warn import StrangeRows
from pilae._data import tables, text
from pilae._data.dates import DateColumn, date_format
from pilae._data.tables import CategoryColumn, EmptyColumn, NumberColumn, Table, learnt_column
from pilae._data.text import TextColumn
from pilae._data.written import NumberFormat, WrittenColumn
from pilae._tables.file_columns import FileColumns


def words(*values):
    return pd.Series(values, name="c", dtype="object")


def sentences(n=300, seed=0):
    """Different texts that share words."""
    rng = np.random.default_rng(seed)
    return words(
        *(" ".join(rng.choice(["red", "green", "Blue", "köln", "ulm", "aachen", str(k)], 5)) for k in range(n))
    )


def learnt(column):
    """What a column alone becomes."""
    return Table.learnt(pd.DataFrame({"c": column})).columns[0]


def numbers(kind, *values):
    """Of these values in a column of that kind."""
    return Table([kind])(pd.DataFrame({"c": words(*values)}))


# ----------------------------------------------------------------------------------------------------------- dates


@pytest.mark.parametrize(
    ("values", "parts", "first"),
    [
        (["1970-01-02", "1970-03-05", "1971-01-01"], ["days", "year", "month", "day", "weekday"], [1, 1970, 1, 2, 4]),
        (["03.01.1970", "31.12.1970"], ["days", "month", "day", "weekday"], [2, 1, 3, 5]),
        (["01/13/1970", "02/01/1970"], ["days", "month", "day", "weekday"], [12, 1, 13, 1]),
        (["13/01/1970", "01/02/1970"], ["days", "month", "day", "weekday"], [12, 1, 13, 1]),
        (["Feb-1970", "Mar-1971"], ["days", "year", "month"], [31, 1970, 2]),
        (["1970-01-01", "1972-01-01"], ["days"], [0]),
        (["1970-01-01T06:00:00Z", "1970-01-01T09:30:00+01:00"], ["days", "hour"], [0.25, 6]),
    ],
)
def test_dates(values, parts, first):
    kind = learnt(words(*values))
    assert isinstance(kind, DateColumn)
    assert kind.parts == parts
    np.testing.assert_array_equal(numbers(kind, *values)[0], first)


def test_columns_of_dates_are_read_as_their_words_are():
    written = words("2020-01-02 03:00", "2021-05-06 07:30", None)
    dates = pd.to_datetime(written)
    expected = Table([learnt(written)])(pd.DataFrame({"c": written}))
    for column in (dates, dates.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"), pl.from_pandas(dates)):
        frame = pl.DataFrame({"c": column}) if isinstance(column, pl.Series) else pd.DataFrame({"c": column})
        np.testing.assert_array_equal(Table.learnt(frame)(frame), expected)


def test_gaps_and_nonsense_among_dates_are_gaps():
    kind = learnt(words("2020-01-01", "2020-01-03", "2020-01-05", None))
    assert kind.words == "dates: days, day, weekday"
    assert np.isnan(numbers(kind, "never", None, "2020-02-31")).all()
    assert not np.isnan(numbers(kind, "2020-02-29")).any()


@pytest.mark.parametrize("values", [["1999", "2020"], ["A-1", "B-2"], ["1-2", "3-4"], ["2020-01-01", "2020-13-01"]])
def test_what_is_no_date(values):
    assert date_format(values) is None


@pytest.mark.parametrize("values", [["2020-01-01", "2021-05-06 07:30"], ["2020-01-01", "2020-02-31"]])
def test_dates_of_the_standard_need_no_pandas(values, monkeypatch):
    expected, written = tables.DateColumn("c", "ISO8601", ["days"])(pd.Series(values), "text"), date_format(values)
    monkeypatch.setattr("pilae._data.dates._has_pandas", lambda: False)
    assert date_format(values) == written
    np.testing.assert_array_equal(tables.DateColumn("c", "ISO8601", ["days"])(pd.Series(values), "text"), expected)


# ------------------------------------------------------------------------------------------------------------ text


def test_text_keeps_what_texts_share():
    kind = learnt(sentences())
    assert isinstance(kind, TextColumn)
    assert numbers(kind, *sentences()).shape == (300, 30)
    same = numbers(kind, "ulm ulm ulm", "ULM  ulm", "köln köln", "ulm")
    close(same[1] / np.linalg.norm(same[1]), same[3] / np.linalg.norm(same[3]))
    assert np.linalg.norm(same[0] - same[1]) < np.linalg.norm(same[0] - same[2])
    assert np.isnan(numbers(kind, None, "", " ")).all()  # a cell without a letter is a gap


def test_directions_are_the_singular_vectors_of_the_weighted_texts():
    column = sentences(80)
    kind = TextColumn.learnt("c", column.tolist(), np.ones(80))
    rows = kind._weighted(text._counted(text._prepared(column.tolist()), kind.grams)).toarray()
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)
    V = np.linalg.svd(rows, full_matrices=False)[2][:6]
    ours = kind.directions[:, :6]
    lengths = np.linalg.norm(ours, axis=0)
    # by its grid a direction is off by at most so much, which is far more than any processor rounds
    off = text.GRID / 2 * np.sqrt(len(kind.grams))
    np.testing.assert_allclose(np.abs(V @ ours) / lengths, np.eye(6), rtol=0, atol=off / lengths.min())
    assert kind(column, "text").var(axis=0).sum() == pytest.approx(1, rel=0, abs=3 * off * np.sqrt(kind.width))


def test_texts_are_cut_into_blocks_without_a_trace(monkeypatch):
    column = sentences(100)
    whole = learnt(column)
    monkeypatch.setattr(text, "BLOCK_LETTERS", 50)
    parts = learnt(column)
    np.testing.assert_array_equal(whole.grams, parts.grams)
    np.testing.assert_array_equal(whole(column, "text"), parts(column, "text"))


def test_rows_in_any_order_give_the_same_directions():
    column = sentences(100)
    np.testing.assert_array_equal(learnt(column).directions, learnt(column[::-1]).directions)


@pytest.mark.parametrize("values", [[""], ["a", "b"], ["\ud800", "x" * 10_000, "  "], []])
def test_texts_without_anything_in_them(values):
    kind = TextColumn.learnt("c", values, np.ones(len(values)))
    assert np.isfinite(kind(words(*values), "text")).all()


THREADS = """
import hashlib, numpy as np, pandas as pd
from pilae._data.tables import Table
rng = np.random.default_rng(0)
texts = ["".join(rng.choice(list("abcdefgh "), 40)) for _ in range(600)]
frame = pd.DataFrame({"text": texts, "id": [f"id{k:05d}" for k in range(600)]})
print(hashlib.sha256(Table.learnt(frame)(frame).tobytes()).hexdigest())
"""


def test_threads_change_no_bit_of_an_encoded_table():
    found = set()
    for threads in ("1", "2"):
        environment = {"OPENBLAS_NUM_THREADS": threads, "PYTHONPATH": ":".join(sys.path)}
        done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1


def test_dates_that_could_begin_with_the_day_are_said():
    days, y = pd.Series(pd.date_range("2020-01-01", periods=12)), np.arange(12.0)
    ridge = {"depth": 0, "head": "ridge"}
    for written, first in (("%d/%m/%Y", "month"), ("%m-%d-%Y", "month")):
        with pytest.warns(UserWarning, match="Dates in column 'd' are read with the month first, but the day could be"):
            model = PILAERegressor(**ridge).fit(pd.DataFrame({"d": days.dt.strftime(written)}), y)
        assert model.fitted_.columns.became()[0].startswith(f"dates, {first} first: days")
    certain = pd.concat([days, pd.Series(pd.Timestamp("2020-01-25"))])
    for written in ("%d/%m/%Y", "%d.%m.%Y", "%Y-%m-%d"):  # no warning, which would be an error here
        PILAERegressor(**ridge).fit(pd.DataFrame({"d": certain.dt.strftime(written)}), np.arange(13.0))
    PILAERegressor(**ridge).fit(pd.DataFrame({"d": ["01/01/2020", "02/02/2020"] * 6}), y)


WRITTEN = {
    "1,234.5 €": [f"{1000 + 7.5 * k:,.1f} €" for k in range(40)],
    "12.5%": [f"{k / 2:.1f}%" for k in range(40)],
    "$1,234": [f"${950 + 7 * k:,d}" for k in range(40)],
    "-EUR 3,5": [f"EUR {k / 2 - 9.5:.1f}".replace(".", ",") for k in range(40)],
    "1.234,5": [f"{950 + 7.5 * k:,.1f}".translate(str.maketrans(",.", ".,")) for k in range(40)],
    "1 234,5 kg": [f"{950 + 7.5 * k:,.1f} kg".translate(str.maketrans(",.", "\u00a0,")) for k in range(40)],
    "1e-05": [f"{2.0**-k!r}" for k in range(40)],
}
STEPS = dict(zip(WRITTEN, [7.5, 0.5, 7, 0.5, 7.5, 7.5, None], strict=True))


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.filterwarnings("ignore:Commas in column 'c'")
def test_numbers_that_are_written_out(written):
    kind = learnt(words(*WRITTEN[written]))
    assert isinstance(kind, WrittenColumn)
    values = numbers(kind, *WRITTEN[written], None)[:, 0]
    assert np.isnan(values[-1])
    expected = 2.0 ** -np.arange(40) if STEPS[written] is None else values[0] + STEPS[written] * np.arange(40)
    np.testing.assert_allclose(values[:-1], expected, rtol=tolerance())
    as_numbers = Table([kind])(pd.DataFrame({"c": values[:-1]}))
    np.testing.assert_array_equal(as_numbers[:, 0], values[:-1])


@pytest.mark.parametrize(
    "values",
    [
        [f"{k}" for k in range(40)],  # whole numbers that somebody made words of
        [f"{k:05d}" for k in range(40)] + ["unknown"],  # keys
        [f"ABC{k}" for k in range(40)],
        [f"{k}%" for k in range(20)] + [f"{k} kg" for k in range(20)],
        ["1.5%", "2.5%", "3.5%"] * 10,
        [f"1.{k}.7" for k in range(40)],
        [f"{k},{k:02d}" for k in range(20)] + [f"{k}.5" for k in range(20)],
    ],
)
def test_what_are_no_numbers(values):
    assert not isinstance(learnt(words(*values)), (NumberColumn, WrittenColumn))


def test_few_words_among_numbers_are_gaps_and_said():
    cells = [f"{k}" for k in range(95)]
    with pytest.warns(
        UserWarning, match="Column 'c' holds numbers, and 'unknown' in 5 of 100 rows: these are taken as"
    ):
        kind = learnt(words(*cells, *["unknown"] * 5))
    np.testing.assert_array_equal(numbers(kind, "7", "unknown", "what")[:, 0], [7, np.nan, np.nan])
    frame = pd.DataFrame({"c": words("7", "unknown", "what", None)})
    assert Table([kind]).coded(frame).unread == {"c": 1}
    with pytest.warns(
        UserWarning, match="holds numbers in 190 of 200 rows, but words such as 'a' in the others: it is"
    ):
        assert not isinstance(learnt(words(*cells, *cells, *"abcdeabcde")), WrittenColumn)
    with pytest.warns(UserWarning, match=r"Commas in column 'c' are taken to stand between thousands \('1,001'\)"):
        learnt(words(*(f"{k},{k % 10:03d}" for k in range(1, 40)), "1,000"))


def test_words_that_are_no_dates_are_gaps_and_counted(mixed):
    columns = ["x", "written", "when"]
    frame = mixed[columns].assign(new=mixed["x"] > 0)
    model = PILAERegressor(**SMALL).fit(frame, mixed["y"])
    odd = frame[:6].assign(written=["foo", "2020-05-01", None, *frame["written"][3:6]], new="perhaps")
    gaps = odd.assign(written=[None, None, None, *frame["written"][3:6]], new=None)
    with pytest.warns(
        StrangeRows, match="8 values in columns 'written', 'new' cannot be read as they were in fit: they"
    ):
        answer = model.predict(odd)
    with pytest.warns(StrangeRows, match="Columns 'written', 'new' had no gaps in fit and are now missing in up to 6"):
        np.testing.assert_array_equal(answer, model.predict(gaps))


# ------------------------------------------------------------------------------------------------------- the table


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "place": rng.choice(["here", "there"], 300), "note": sentences()})
    frame["when"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 300), unit="D")
    frame["written"] = frame["when"].dt.strftime("%d.%m.%Y")
    frame["flat"] = [3 if few else "3 a" for few in rng.random(300) < 0.3]
    ulm = frame["note"].str.contains("ulm").to_numpy(float)
    return frame.assign(empty=None, y=ulm + (frame["place"] == "here") + 0.1 * rng.normal(size=300))


BECAME = [
    "numbers",
    "2 categories",
    "text, 30 directions",
    "dates: days, year, month, day, weekday",
    "dates: days, year, month, day, weekday",
    "2 categories",
    "nothing: no value",
]
SMALL = {"depth": 0, "input_scaling": "standard", "head": SHLN(width=20), "random_state": 0}


def test_a_model_says_what_columns_became(mixed):
    columns = PILAERegressor(**SMALL).fit(mixed.drop(columns="y"), mixed["y"]).fitted_.columns
    assert columns.became() == BECAME
    assert columns.widths().sum() == columns.width
    assert columns.widths()[[0, 2, 3, 6]].tolist() == [1, 30, 5, 0]


def test_the_command_line_fits_what_python_fits(mixed, tmp_path, capsys):
    """The same columns, the same network, the same answers."""
    mixed.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "t.pilae"
    assert cli.main(["fit", str(tmp_path / "t.csv"), "--target", "y", "-o", str(out), "--quiet", "--holdout", "0"]) == 0
    model = PILAERegressor(random_state=0).fit(mixed.drop(columns="y"), mixed["y"])
    ours = load(out)
    close(ours.predict(mixed), model.predict(mixed.drop(columns="y")), **rounding(model))
    assert ours["model"].fitted_.columns.became() == BECAME
    assert model.score(mixed.drop(columns="y"), mixed["y"]) > 0.9
    assert cli.main(["info", str(out)]) == 0
    assert "  note: text, 30 directions" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:Column:pilae._base.warn.StrangeRows")
def test_free_text_in_any_frame(mixed):
    frame = mixed[["x", "note"]]
    model = PILAEClassifier(**SMALL).fit(frame[:250], mixed["note"].str.contains("ulm")[:250])
    assert model.score(frame[250:], mixed["note"].str.contains("ulm")[250:]) > 0.8
    np.testing.assert_array_equal(model.predict_proba(pl.from_pandas(frame)), model.predict_proba(frame))
    gaps = frame[:3].assign(note=[None, "", "ulm"])
    assert np.isfinite(model.predict_proba(gaps)).all()


def test_a_row_alone_is_encoded_as_among_others(mixed):
    table = Table.learnt(mixed)
    np.testing.assert_array_equal(table(mixed)[7:8], table(mixed.iloc[7:8]))


def test_rows_do_not_depend_on_their_labels(mixed):
    relabelled = mixed.set_axis(range(1000, 1300))
    made = [Table.learnt(frame) for frame in (mixed, relabelled)]
    digests = {hashlib.sha256(t(f).tobytes()).hexdigest() for t in made for f in (mixed, relabelled)}
    assert len(digests) == 1


def test_files_of_small_tables_are_small_and_hold_no_cell(mixed, tmp_path):
    mixed.assign(note=[f"{note} Zaphod" for note in mixed["note"]]).to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "t.pilae"
    assert cli.main(["fit", str(tmp_path / "t.csv"), "--target", "y", "-o", str(out), "--quiet"]) == 0
    assert out.stat().st_size < 2**20
    assert not any(word in out.read_bytes() for word in (b"Zaphod", b"zaphod", b"skops"))
    assert load(out).predict(mixed).shape == (300,)


def test_columns_without_a_value_say_nothing(mixed):
    model = PILAERegressor(**SMALL).fit(mixed[["x", "place", "empty"]], mixed["y"])
    np.testing.assert_array_equal(
        model.predict(mixed[["x", "place"]].assign(empty="new")), model.predict(mixed[["x", "place", "empty"]])
    )
    with pytest.raises(ValueError, match="No column of X has a value"):
        PILAERegressor(**SMALL).fit(pd.DataFrame({"a": words(*[None] * 9).astype("string")}), range(9))


def test_later_rows_may_be_written_out():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"new": rng.random(60) < 0.4, "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(range(60), "D")}
    )
    table = Table.learnt(frame)
    np.testing.assert_array_equal(table(frame.astype(str)), table(frame))
    assert np.isnan(table(pd.DataFrame({"new": ["perhaps"], "day": ["never"]}))).all()


# ------------------------------------------------------------------------------------------------------- sources


def test_sources_of_tables_give_the_model_of_the_table(mixed, tmp_path):
    """Also a category that is not among the first rows."""
    frame = mixed.drop(columns=["empty", "flat"]).astype({"written": object})
    frame.loc[150:, "place"] = frame["place"][150:].replace("there", "later")
    X, y = frame.drop(columns="y"), frame["y"].to_numpy()
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    expected = PILAERegressor(**SMALL).fit(X, y)
    blocks = [(X[:100], y[:100]), (X[100:], y[100:])]
    for source in (scan_blocks(blocks), scan_csv(tmp_path / "t.csv", "y"), scan_parquet(tmp_path / "t.parquet", "y")):
        model = PILAERegressor(**SMALL).fit(source)
        close(model.predict(X), expected.predict(X), **rounding(expected))
        close(model.predict(source), expected.predict(X), **rounding(expected))
        close(model.score(source), expected.score(X, y), **rounding(expected))
        assert model.fitted_.columns.became()[1] == "3 categories"
    before = expected.predict(X)
    expected.partial_fit(scan_blocks(blocks)).forget(X, y)
    close(expected.predict(X), before, **rounding(expected))


def test_kinds_are_learnt_from_the_first_rows_and_categories_from_all(monkeypatch):
    monkeypatch.setattr(tables, "SAMPLE_ROWS", 10)
    frame = pd.DataFrame({"town": ["Ulm", "Bonn"] * 10 + ["Bern"] * 5, "x": range(25)})
    table = Table.learnt_from(frame[k : k + 5] for k in range(0, 25, 5))
    assert table.columns[0].values.tolist() == ["Bern", "Bonn", "Ulm"]
    monkeypatch.setattr(tables, "MOST_VALUES", 2)
    monkeypatch.setattr("pilae._data.categories.MOST_VALUES", 2)
    with pytest.raises(ValueError, match="Column 'town' has more than 2 categories"):
        Table.learnt_from(frame[k : k + 5] for k in range(0, 25, 5))


def test_sources_of_tables_where_numbers_are_wanted(mixed):
    blocks = [(mixed[["x", "place"]], mixed["y"])]
    with pytest.raises(ValueError, match="PILAERegressor takes numbers only here"):
        PILAERegressor(categorical_features=None, **SMALL).fit(scan_blocks(blocks))
    model = PILAERegressor(**SMALL).fit(mixed[["x"]], mixed["y"])
    with pytest.raises(ValueError, match="they come in another order or there are others"):
        model.predict(scan_blocks(blocks))
    model = PILAERegressor(**SMALL).fit(mixed[["x", "place"]], mixed["y"])
    with pytest.raises(ValueError, match="this source brings numbers"):
        model.predict(scan_blocks([np.zeros((3, 2))]))
    for other in (mixed[["place", "x"]], np.zeros((300, 2))):
        with pytest.raises(ValueError, match="Block 1 has other column names"):
            PILAERegressor(**SMALL).fit(scan_blocks([*blocks, (other, mixed["y"])]))
    with pytest.raises(ValueError, match="Block 0 is not a two-dimensional array"):
        scan_blocks([np.zeros(3)])


# ---------------------------------------------------------------------------------------------------- forged files


@pytest.mark.parametrize(
    "column",
    [
        3,
        NumberColumn("c", "text"),
        CategoryColumn("c", "text", np.array(["a", "a"], dtype=object)),
        CategoryColumn("c", "text", np.array(["a", 3], dtype=object)),
        DateColumn("c", "%Q", ["days"]),
        WrittenColumn("c", NumberFormat("", "%", "x", "."), []),
        WrittenColumn("c", NumberFormat("", "%", ",", "."), [3]),
        DateColumn("c", None, ["days", "moon"]),
        TextColumn("c", np.zeros(3, np.int32), np.zeros(3), np.zeros((2, 4), np.float32)),
    ],
)
def test_forged_tables_are_refused(column):
    Table([EmptyColumn("c"), learnt_column("c", words("a", "b"), "text")]).check(2)
    with pytest.raises((TypeError, ValueError)):
        Table([column]).check(1)


@pytest.mark.parametrize(
    "change",
    [
        {"columns": ["x", 3]},
        {"numeric": ["size"]},
        {"gap_words": {"town": ["?"]}},
        {"task": "any"},
        {"target_format": 3},
        {"missing": [0.5]},
    ],
)
def test_forged_columns_of_files_are_refused(mixed, change):
    columns = FileColumns.found(mixed, "y", None, None, 300)
    columns._check_loaded()
    vars(columns).update(change)
    with pytest.raises((TypeError, ValueError)):
        columns._check_loaded()
