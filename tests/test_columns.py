"""What the columns of a table become: numbers, categories, dates, text."""

import hashlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from pilae import load
from pilae._tables import columns, text
from pilae._tables.columns import CategoryColumn, DateColumn, NumberColumns, kind_of
from pilae._tables.encoder import TableEncoder
from pilae._tables.frames import date_format
from pilae._tables.text import TextColumn


def words(*values):
    return pd.Series(values, name="c", dtype="object")


def sentences(n=300, seed=0):
    """Different texts that share words."""
    rng = np.random.default_rng(seed)
    return words(
        *(" ".join(rng.choice(["red", "green", "Blue", "köln", "ulm", "aachen", str(k)], 5)) for k in range(n))
    )


# --------------------------------------------------------------------------------------------------------- numbers


def test_gaps_become_the_median_and_many_of_them_a_column():
    frame = pd.DataFrame({"few": [1.0, 2.0, np.nan, 4.0] * 5, "many": [np.nan, 1.0] * 10, "none": [np.nan] * 20})
    numbers = NumberColumns.fitted(["few", "many", "none"], frame)
    found = numbers.transform(frame)
    assert numbers.outputs == ["few", "many", "none", "many: missing"]
    assert found[2].tolist() == [2.0, 1.0, 0.0, 1.0]
    assert found[3].tolist() == [4.0, 1.0, 0.0, 0.0]


# ------------------------------------------------------------------------------------------------------ categories


def test_categories_gaps_and_words_that_were_not_met():
    kind = kind_of(words(*["a", "b", "c", None] * 3, "rare", "rare"))
    assert isinstance(kind, CategoryColumn)
    assert kind.outputs == ["c: a", "c: b", "c: c", "c: missing"]
    np.testing.assert_array_equal(
        kind.transform(words("b", None, "new", "rare")), [[0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    )


@pytest.mark.parametrize(
    ("values", "outputs", "asked", "found"),
    [
        (["no", "yes"], ["c: yes"], ["no", "yes", "perhaps", None], [[0], [1], [0.5], [0.5]]),
        (["yes", None], ["c: missing"], ["yes", None, "no"], [[0], [1], [0.5]]),
        (["same"], [], ["same", None], [[], []]),
    ],
)
def test_two_categories_share_a_column_and_one_says_nothing(values, outputs, asked, found):
    kind = kind_of(words(*values * 3))
    assert kind.outputs == outputs
    np.testing.assert_array_equal(kind.transform(words(*asked)), found)


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
    kind = kind_of(words(*values))
    assert isinstance(kind, DateColumn)
    assert kind.parts == parts
    np.testing.assert_array_equal(kind.transform(words(*values))[0], first)


def test_columns_of_dates_are_read_as_their_words_are():
    written = words("2020-01-02 03:00", "2021-05-06 07:30", None)
    dates = pd.to_datetime(written)
    for column in (dates, dates.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")):
        np.testing.assert_array_equal(kind_of(column).transform(column), kind_of(written).transform(written))


def test_gaps_and_nonsense_among_dates_are_missing():
    kind = kind_of(words("2020-01-01", "2020-01-03", "2020-01-05", None))
    row = kind.transform(words("never"))[0]
    assert dict(zip(kind.outputs, row, strict=True)) == {
        "c: days": 18264.0,
        "c: day": 3.0,
        "c: weekday": 4.0,
        "c: missing": 1.0,
    }


@pytest.mark.parametrize("values", [["1999", "2020"], ["A-1", "B-2"], ["1-2", "3-4"], ["2020-01-01", "2020-13-01"]])
def test_what_is_no_date(values):
    assert date_format(words(*values)) == (False, None)


# ------------------------------------------------------------------------------------------------------------ text


def test_text_keeps_what_texts_share():
    column = sentences()
    kind = kind_of(column)
    assert isinstance(kind, TextColumn)
    found = kind.transform(column)
    assert found.shape == (300, 30)
    same, other = kind.transform(words("ulm ulm ulm", "ULM  ulm", "köln köln", "ulm")), kind.transform(words(None, ""))
    np.testing.assert_allclose(same[1] / np.linalg.norm(same[1]), same[3] / np.linalg.norm(same[3]), atol=1e-6)
    assert np.linalg.norm(same[0] - same[1]) < np.linalg.norm(same[0] - same[2])
    assert not other.any()


def test_directions_are_the_singular_vectors_of_the_weighted_texts():
    column = sentences(80)
    kind = TextColumn.fitted(column)
    rows = kind._weighted(text._counted(text._factorised(column)[1], kind.grams)).toarray()
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)
    V = np.linalg.svd(rows, full_matrices=False)[2][:6]
    ours = kind.directions[:, :6] / np.linalg.norm(kind.directions[:, :6], axis=0)
    np.testing.assert_allclose(np.abs(V @ ours), np.eye(6), atol=0.02)  # rounded, and found by power steps
    assert kind.transform(column).var(axis=0).sum() == pytest.approx(1, abs=1e-3)


def test_texts_are_cut_into_blocks_without_a_trace(monkeypatch):
    column = sentences(100)
    whole = TextColumn.fitted(column)
    monkeypatch.setattr(text, "BLOCK_LETTERS", 50)
    parts = TextColumn.fitted(column)
    np.testing.assert_array_equal(whole.grams, parts.grams)
    np.testing.assert_array_equal(whole.transform(column), parts.transform(column))


@pytest.mark.parametrize("column", [words(""), words("a", "b"), words("\ud800", "x" * 10_000, "  ")])
def test_texts_without_anything_in_them(column):
    kind = TextColumn.fitted(column)
    assert np.isfinite(kind.transform(column)).all()


THREADS = """
import hashlib, numpy as np, pandas as pd
from pilae._tables.encoder import TableEncoder
rng = np.random.default_rng(0)
texts = ["".join(rng.choice(list("abcdefgh "), 40)) for _ in range(600)]
frame = pd.DataFrame({"text": texts, "id": [f"id{k:05d}" for k in range(600)], "y": rng.normal(size=600)})
encoder = TableEncoder.fitted(frame, "y", None, None, 600)
print(hashlib.sha256(encoder.transform(frame).tobytes()).hexdigest())
"""


def test_threads_change_no_bit_of_an_encoded_table():
    found = set()
    for threads in ("1", "2"):
        environment = {"OPENBLAS_NUM_THREADS": threads, "PYTHONPATH": ":".join(sys.path)}
        done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1


# ------------------------------------------------------------------------------------------------------ the encoder


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "place": rng.choice(["here", "there"], 300), "note": sentences()})
    frame["when"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 300), unit="D")
    return frame.assign(empty=None, y=rng.normal(size=300))


def test_an_encoder_says_what_columns_became(mixed):
    encoder = TableEncoder.fitted(mixed, "y", None, None, 300)
    names = encoder.get_feature_names_out()
    assert encoder.transform(mixed).shape == (300, len(names))
    assert encoder.kinds() == [
        "numbers",
        "2 categories",
        "text, 30 directions",
        "dates: days, year, month, day, weekday",
        "nothing: no value",
    ]


def test_a_row_alone_is_encoded_as_among_others(mixed):
    encoder = TableEncoder.fitted(mixed, "y", None, None, 300)
    whole = encoder.transform(mixed)
    np.testing.assert_array_equal(whole[7:8], encoder.transform(mixed.iloc[7:8]))


def test_rows_do_not_depend_on_their_labels(mixed):
    encoder = TableEncoder.fitted(mixed, "y", None, None, 300)
    relabelled = mixed.set_axis(range(1000, 1300))
    again = TableEncoder.fitted(relabelled, "y", None, None, 300)
    digests = {
        hashlib.sha256(e.transform(f).tobytes()).hexdigest() for e in (encoder, again) for f in (mixed, relabelled)
    }
    assert len(digests) == 1


def test_files_of_small_tables_are_small_and_hold_no_cell(mixed, tmp_path):
    from pilae import cli

    mixed.assign(note=[f"{note} Zaphod" for note in mixed["note"]]).to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "t.pilae"
    assert cli.main(["fit", str(tmp_path / "t.csv"), "--target", "y", "-o", str(out), "--quiet"]) == 0
    assert out.stat().st_size < 2**20
    assert not any(word in out.read_bytes() for word in (b"Zaphod", b"zaphod", b"skops"))
    assert load(out).predict(mixed).shape == (300,)


@pytest.mark.parametrize(
    "change",
    [
        {"others": [3]},
        {"numbers": None},
        {"columns": ["x"]},
        {"others": [CategoryColumn("place", ["a", "a"], False)]},
        {"others": [DateColumn("when", "%Q", ["days"], np.zeros(1), False)]},
        {"others": [DateColumn("when", None, ["days", "month"], np.zeros(1), False)]},
        {"others": [TextColumn("note", np.zeros(3, np.int32), np.zeros(3), np.zeros((2, 4), np.float32))]},
        {"numbers": columns.NumberColumns(["x"], np.zeros(2), np.zeros(1, bool))},
    ],
)
def test_forged_encoders_are_refused(mixed, change):
    encoder = TableEncoder.fitted(mixed, "y", None, None, 300)
    encoder._check_loaded()
    vars(encoder).update(change)
    with pytest.raises((TypeError, ValueError)):
        encoder._check_loaded()
