"""Damaged and hostile tables: every row as it is written, or one sentence."""

import csv
import gzip
import io
import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers import close
from pilae import cli
from pilae._tables import cells, delimited, errors, files, words
from pilae._tables.cells import Cells
from pilae._tables.errors import TableError
from pilae._tables.file_columns import FileColumns


def rows_of(path, data, **options):
    """All rows of a file with this content, through the reader of the command line."""
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return pd.concat(list(files.TableFile(str(path), **options).pieces()), ignore_index=True)


# ------------------------------------------------------------------------------------------------------------- CSV


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b,y\n1,2,3\n4,5\n6,7,8\n", "row 2 has 2 cells, but the header names 3 columns"),
        ("a,b\n1\n2\n", "row 1 has 1 cells"),
        ("a,b\n1,2\n3,4,5\n", "row 2 has 3 cells, but the header names 2 columns"),
        ("a,b\n1,2,3\n4,5,6\n", "row 1 has 3 cells, but the header names 2 columns"),
        ("a,b\n1,2,\n4,5,\n", "row 1 has 3 cells"),
        ("a,b\n1,2,3\n4\n", "row 1 has 3 cells"),  # as many cells as there should be, in all
        ("a,b,a\n1,2,3\n", "two columns 'a'"),
        ("a,a \n1,2\n", "two columns 'a'"),
        ("a,b\n1,x\0y\n", "NUL"),
        ('a,b\n1,"x\n2,"y"\n3,z\n', "text after its closing quote"),
        ('a,b\n1,"x\n', "EOF inside string"),
        ('a,b\n1,"x, y"\n2\n', "row 2 has 1 cells"),
        ("\n\n", "empty"),
        ("a,b\n", "no rows"),
    ],
)
def test_torn_csv_files_are_refused(tmp_path, text, sentence):
    with pytest.raises(TableError, match=sentence):
        files.TableFile(str(tmp_path / "t.csv")).sample() if rows_of(tmp_path / "t.csv", text).empty else None


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_quoted_cells_are_seen_over_any_blocks(size, newline, monkeypatch):
    """What lies between quotes is no separator, wherever a block ends."""
    lines = ['a,"b, c",d', '1,"x, ""y"", z",3', ' , "two', 'lines, here",', '5,6" pipe,7', '"","",""', "", "8,9,10"]
    text = newline.join(lines) + newline
    cells = Cells(io.StringIO(text, newline=""), ",", "t")
    assert cells.names == ["a", "b, c", "d"]
    monkeypatch.setattr(cells, "_file", Slowly(cells._file, size))
    given = io.TextIOWrapper(io.BufferedReader(cells), encoding="utf-8", newline="").read()
    rows = [row for row in csv.reader(io.StringIO(given, newline="")) if row]
    two = f"two{newline}lines, here"
    assert rows == [
        ["1", 'x, "y", z', "3"],
        [" ", two, ""],
        ["5", '6" pipe', "7"],
        ["", "", ""],
        ["8", "9", "10"],
    ]


class Slowly:
    """A text file that gives a few letters at a time."""

    def __init__(self, file, size):
        self.file, self.size = file, size

    def read(self, _):
        return self.file.read(self.size)


@pytest.mark.parametrize(
    ("cells", "decimal", "numbers"),
    [
        (["1", "-2.5", "+3e2", ".5", "7.", None], ".", [1, -2.5, 300, 0.5, 7, np.nan]),
        (["1,5", "+2", ",5", "1e-3"], ",", [1.5, 2, 0.5, 1e-3]),
    ],
)
def test_numbers_as_people_write_them(cells, decimal, numbers):
    found = words.parsed(pa.array(cells), decimal)
    np.testing.assert_array_equal(found.numbers, numbers)
    assert not len(found.odd)


@pytest.mark.parametrize("word", ["1_000", "0x1F", "1,5", "1 000", "12a", "١", "--1", "e5", "."])
def test_words_that_python_would_take_for_numbers_or_nearly(word):
    assert words.parsed(pa.array(["1", word]), ".").odd.tolist() == [1]


def test_points_are_no_decimals_where_commas_are():
    assert words.parsed(pa.array(["1,5", "1.234"]), ",").odd.tolist() == [1]


@pytest.mark.parametrize(
    ("text", "separator", "decimal"),
    [
        ("a;b\n1,5;x\n2;y\n", ";", ","),
        ("a;b\n1,5;2.5\n", ";", "."),
        ("a;b\n1;x, y\n", ";", "."),
        ("a,b\n1,5\n", ",", "."),
        ('a;b\n"1,5";x\n', ";", ","),
        ("a b\n1,5 2\n", r"\s+", ","),
    ],
)
def test_decimal_points_are_found(text, separator, decimal):
    assert delimited.decimal_of(text, separator) == decimal


def test_few_words_among_numbers_are_gaps_and_many_are_not():
    numbers = [str(k) for k in range(100)]
    assert words.holds_numbers(words.parsed(pa.array([*numbers, "x", "y"]), "."))
    assert not words.holds_numbers(words.parsed(pa.array([*numbers, "x", "y", "z"]), "."))
    assert not words.holds_numbers(words.parsed(pa.array(["1", "x"]), "."))


def test_files_are_read_in_blocks_of_any_size(tmp_path, monkeypatch):
    text = "a,b\n" + "".join(f'{k},"row {k}\nand more, of it"\n' for k in range(500))
    whole = rows_of(tmp_path / "t.csv", text)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(delimited, "KEPT_BYTES", 0)
    pd.testing.assert_frame_equal(rows_of(tmp_path / "t.csv", text), whole)
    with pytest.raises(TableError, match="row 501 has 1 cells"):
        rows_of(tmp_path / "t.csv", text + "1\n")
    with pytest.raises(TableError, match="a line of more than 1,000 bytes"):
        rows_of(tmp_path / "t.csv", text + "1," + "x" * 3000 + "\n")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_a_mark_of_the_encoding_is_no_part_of_a_name(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeff\n\n"a, b",y\n1,2\n'.encode(encoding))
    assert list(files.TableFile(str(path), files.Format(encoding=encoding)).sample()) == ["a, b", "y"]


def test_columns_between_blanks(tmp_path, capsys):
    path = tmp_path / "t.txt"
    path.write_text("a  b   y\n1 2 3\n 4\t5 6 \n")
    read = files.TableFile(str(path), files.Format(r"\s+"))
    assert pd.concat(list(read.pieces())).to_numpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    path.write_text("a b y\n1 2 3\n4 5\n")
    with pytest.raises(TableError, match="row 2 has 2 cells"):
        files.TableFile(str(path), files.Format(r"\s+")).sample()


def test_gaps_are_the_same_words_in_fit_predict_and_evaluate(tmp_path):
    """In evaluate, text columns used to keep "NA" and "" as words."""
    text = "x,town ,y\n" + "1,Ulm,a\n2,NA,b\n3,,NA\n" * 10
    path = tmp_path / "t.csv"
    fitted = rows_of(path, text, target="y")
    assert fitted["town"].isna().sum() == 20
    known = FileColumns(["x", "town"], "y", "classification", numeric=["x"])
    for options in ({"target": "y"}, {}):
        again = pd.concat(list(files.TableFile(str(path), known=known, **options).pieces()))
        assert again["town"].isna().sum() == 20
    assert set(fitted["y"]) == {"a", "b", "NA"}


def test_long_lines_and_many_columns_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "LONGEST_LINE", 2**19)
    monkeypatch.setattr(errors, "MOST_COLUMNS", 20)
    long = "x" * 2**20
    for text in (
        f"a,b\n1,{long}\n",
        f"a,b\n1,2\n1,{long}\n",
        f'a,b\n1,"{long}\n',
        'a,b\n1,2\n1,"' + "x\n" * 2**19,
        long,
    ):
        with pytest.raises(TableError, match="more than 524,288 characters"):
            rows_of(tmp_path / "t.csv", text)
    fits = "x" * 2**18
    assert rows_of(tmp_path / "t.csv", f"a,b\n1,{fits}\n2,{fits}\n")["b"].tolist() == [fits, fits]
    with pytest.raises(TableError, match="has 30 columns: at most 20"):
        rows_of(tmp_path / "t.csv", ",".join(f"c{k}" for k in range(30)) + "\n")


@pytest.mark.parametrize("cut", [3, 12, 30])
def test_damaged_compressed_files(tmp_path, cut):
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 100)
    with pytest.raises(TableError, match=r"cannot be decompressed|is empty"):
        rows_of(tmp_path / "t.csv.gz", packed[:-cut])


# ----------------------------------------------------------------------------------------------------------- ARFF


def arff(*rows, attributes=("a numeric", "b {x,y}")):
    return "\n".join(["@relation r", *(f"@attribute {line}" for line in attributes), "@data", *rows]) + "\n"


def test_arff_values(tmp_path):
    attributes = ("'a b' REAL", "b {x,'y, z',\"it's\"}", "when date 'yyyy-MM-dd HH:mm'", "note string")
    rows = [
        "1e3,x,'2020-01-02 03:04',hello",
        "% nothing",
        "?,'y, z',?,'a\\'b, c'",
        ' -2 ,"it\'s", "1999-12-31 00:00", ?',
    ]
    found = rows_of(tmp_path / "t.arff", "\ufeff" + arff(*rows, attributes=attributes))
    assert list(found) == ["a b", "b", "when", "note"]
    assert found["a b"].fillna(-1).tolist() == [1000, -1, -2]
    assert found["b"].tolist() == ["x", "y, z", "it's"]
    assert found["when"][0] == pd.Timestamp("2020-01-02 03:04")
    assert found["note"][1] == "a'b, c"
    assert found["note"].isna().tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (arff("1,x,3"), "line 5 has 3 values, but there are 2 attributes"),
        (arff("1"), "line 5 has 1 values"),
        (arff("1?2,x"), "could not convert string to float"),
        (arff("1_000,x"), "'1_000' is no number"),
        (arff("1,z"), "'z' is not among its values 'x', 'y'"),
        (arff("{0 1}"), "sparse"),
        (arff("1,'x"), "unclosed quote"),
        (arff("1,x", attributes=("(a+)+ relational", "b numeric")), "type 'relational'"),
        (arff("1,x", attributes=("a numeric", "a {x}")), "two columns 'a'"),
        (arff("1,2020", attributes=("a numeric", "b date 'QQQ'")), "date format 'QQQ'"),
        (arff("1,99999", attributes=("a numeric", "b date yyyy")), "attribute 'b'"),
        ("@relation r\n@attribute a numeric\n", "no @data"),
        ("@data\n1\n", "no attributes"),
        ("hello\n", "where @attribute NAME TYPE was expected"),
        (arff("1,x").encode() + b"\xff,x\n", "not written in UTF-8"),
    ],
)
def test_torn_arff_files_are_refused(tmp_path, text, sentence):
    with pytest.raises(TableError, match="cannot be read as ARFF") as caught:
        rows_of(tmp_path / "t.arff", text)
    assert sentence in str(caught.value)


# ------------------------------------------------------------------------------------------------------------ npz


def npz(tmp_path, **arrays):
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return rows_of(tmp_path / "t.npz", sink.getvalue())


def member(header, data=b""):
    """An npz file with one array that says this about itself."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        text = repr(header).encode()
        archive.writestr("x.npy", b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + data)
    return sink.getvalue()


def test_npz_arrays_as_pandas_takes_them(tmp_path):
    y = np.array(["a", "ü"])
    found = npz(
        tmp_path, X=np.array([[1, 2], [3, 4]], dtype=">i4"), half=np.ones(2, "f2"), y=np.char.encode(y, "utf-8")
    )
    assert found["x1"].tolist() == [2, 4]
    assert found["y"].tolist() == ["a", "ü"]
    assert found["half"].dtype == np.float32


class Touch:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def saying(descr, shape, data=b""):
    return member({"descr": descr, "fortran_order": False, "shape": shape}, data)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\x93NUMPY\1\0", "not a zip file"),
        (b"", "not a zip file"),
        (saying("<f8", (10**13,)), "not as long as its shape"),
        (saying("<f8", (-1, 8), bytes(64)), "not as long as its shape"),
        (saying("<f8", (2**62, 4)), "not as long as its shape"),
        (saying("<U0", (10**13,)), "not numbers, text or dates"),
        (saying("<c16", (2,), bytes(32)), "holds complex128"),
        (saying("|b1", (2,), b"\1\7"), "no truth values"),
        (saying("<U1", (1,), b"\xff\xff\xff\x7f"), "characters that do not exist"),
        (saying("<f8", (10**15, 0)), "expected X"),
        (saying("<M8", (1,), bytes(8)), "unit"),
    ],
    ids=range(11),  # an archive holds the time it was made at, and names must be the same in every process
)
def test_arrays_that_are_not_what_they_say(tmp_path, data, sentence):
    with pytest.raises(TableError, match=sentence):
        rows_of(tmp_path / "t.npz", data)


def test_no_pickle_is_loaded(tmp_path):
    mark = tmp_path / "mark"
    data = pickle.dumps(np.array([Touch(mark)], dtype=object))
    with pytest.raises(TableError, match="holds Python objects"):
        rows_of(tmp_path / "t.npz", saying("|O", (1,), data))
    assert not mark.exists()


def test_names_in_npz_files(tmp_path):
    with pytest.raises(TableError, match="two columns 'x0'"):
        npz(tmp_path, X=np.ones((3, 2)), x0=np.ones(3))
    with pytest.raises(TableError, match="2 columns in X, but 3 feature_names"):
        npz(tmp_path, X=np.ones((3, 2)), feature_names=np.array(["a", "b", "c"]))


def test_arrays_larger_than_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr("pilae._tables.npz._memory", lambda: 1000)
    with pytest.raises(TableError, match="write a table of this size as Parquet or CSV"):
        npz(tmp_path, X=np.ones((300, 2)))


# -------------------------------------------------------------------------------------------------------- Parquet


def parquet(path, table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return rows_of(path / "t.parquet", sink.getvalue())


def test_names_and_labels_in_parquet_files(tmp_path):
    """Names that pandas wrote as numbers can be named; what it wrote as labels of rows is no column."""
    frame = pd.DataFrame(np.ones((3, 2)), index=[5, 6, 7])
    frame.to_parquet(tmp_path / "t.parquet")
    assert list(files.TableFile(str(tmp_path / "t.parquet")).sample()) == ["0", "1"]
    table = pa.table({"a": [1], "b": [2]})
    for note in (b"{", b"\xff", b"[" * 5000, b'{"index_columns": 5}', json.dumps({"index_columns": [[]]}).encode()):
        assert list(parquet(tmp_path, table.replace_schema_metadata({b"pandas": note}))) == ["a", "b"]


def test_bytes_in_parquet_files_are_text(tmp_path):
    assert parquet(tmp_path, pa.table({"a": [b"\xc3\xbc", None]}))["a"].tolist()[0] == "ü"
    with pytest.raises(TableError, match="cannot be read as Parquet"):
        parquet(tmp_path, pa.table({"a": [b"\xff"]}))


@pytest.mark.parametrize("column", [[[1, 2]], [{"a": 1}]])
def test_nested_cells_are_refused(tmp_path, column):
    with pytest.raises(TableError, match=r"column 'odd' holds .*, not one value in each row"):
        parquet(tmp_path, pa.table({"odd": column}))


def test_two_columns_of_one_name_in_parquet(tmp_path):
    with pytest.raises(TableError, match="two columns 'a'"):
        parquet(tmp_path, pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))


def test_a_page_with_another_checksum(tmp_path):
    sink = io.BytesIO()
    table = pa.table({"a": np.arange(1000.0)})
    pq.write_table(table, sink, compression="none", use_dictionary=False, write_page_checksum=True)
    data = bytearray(sink.getvalue())
    data[2000] ^= 1
    with pytest.raises(TableError, match="cannot be read as Parquet"):
        rows_of(tmp_path / "t.parquet", bytes(data))


# ------------------------------------------------------------------------------------------------- JSON and sheets


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.json", '[{"a": 1, "b ": "x"}, {"a": null, "b ": "y"}, {"b ": null, "a": 2.5}]'),
        ("t.json", '\ufeff{"a": [1, null, 2.5], "b": ["x", "y", null]}'),
        ("t.json", '{"a": {"0": 1, "1": null, "2": 2.5}, "b": {"0": "x", "1": "y", "2": null}}'),
        ("t.jsonl", '{"a": 1, "b": "x"}\n\n{"b": "y"}\n{"a": 2.5}\n'),
    ],
)
def test_json_tables(tmp_path, name, text):
    found = rows_of(tmp_path / name, text)
    assert list(found) == ["a", "b"]
    np.testing.assert_array_equal(found["a"], [1, np.nan, 2.5])
    assert found["b"].isna().tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "cannot be read as JSON"),
        ("[" * 100_000, "cannot be read as JSON"),
        (b"\xff", "cannot be read as JSON"),
        ("3", "is no table: expected a list of objects"),
        ("[[1, 2]]", "is no table"),
        ('{"a": [1], "b": [1, 2]}', "all of one length"),
        ('[{"a": {"b": 1}}]', "Column 'a' of .* holds a dict in row 1"),
        ('[{"a": 1, "a ": 2}]', "two columns 'a'"),
    ],
)
def test_json_that_is_no_table(tmp_path, text, sentence):
    with pytest.raises(TableError, match=sentence):
        rows_of(tmp_path / "t.json", text)


def test_spreadsheets(tmp_path):
    frame = pd.DataFrame(
        {"a": [1.5, None, 2], "when": pd.to_datetime(["2020-01-01", "2020-02-03", None]), "b": list("xyz")}
    )
    try:
        frame.to_excel(tmp_path / "t.xlsx", index=False)
    except ImportError:
        (tmp_path / "t.xlsx").write_bytes(member({"no": "sheet"}))
        with pytest.raises(ImportError, match="Reading spreadsheets needs openpyxl: pip install openpyxl"):
            files.TableFile(str(tmp_path / "t.xlsx")).sample()
        return
    found = files.TableFile(str(tmp_path / "t.xlsx")).sample()
    np.testing.assert_array_equal(found["a"], frame["a"])
    assert found["when"].tolist()[:2] == frame["when"].tolist()[:2]
    with pytest.raises(TableError, match="cannot be read as a spreadsheet"):
        rows_of(tmp_path / "t.xlsx", member({"no": "sheet"}))


def test_a_spreadsheet_that_would_fill_memory_is_refused(tmp_path):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(2**28 + 1))
    with pytest.raises(TableError, match="claims to unpack to far more than it is"):
        rows_of(tmp_path / "t.xlsx", sink.getvalue())


# ---------------------------------------------------------------------------------------------------- the commands


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{u:.3f},{v:.3f},{'yes' if u > v else 'no'}" for u, v in rng.normal(size=(150, 2))]
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "\n".join(lines) + "\n")
    return path


def test_too_little_memory_is_a_sentence(table, capsys, monkeypatch):
    def never(*_):
        raise MemoryError("Unable to allocate 5 TiB")

    monkeypatch.setattr(files.TableFile, "sample", never)
    assert run("fit", table, "--target", "y", "-o", table.with_name("m"), "--quiet") == 1
    assert capsys.readouterr().err.startswith("pilae: there is not enough memory for this (Unable to allocate 5 TiB)")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--columns", "a,a"], "two columns 'a'"),
        (["--separator", "ab"], "--separator must be one ASCII character"),
        (["--separator", "é"], "--separator must be one ASCII character"),
        (["--separator", '"'], "--separator must be one ASCII character"),
        (["--separator", ";", "--decimal", ";"], "--decimal ';' cannot be told"),
        (["--decimal", "1"], "--decimal '1' cannot be told"),
        (["--decimal", ","], "so it cannot be its decimal point"),
    ],
)
def test_options_that_cannot_be_meant(table, capsys, options, sentence):
    assert run("fit", table, "--target", "y", "-o", table.with_name("m"), "--quiet", *options) == 1
    assert sentence in capsys.readouterr().err


def test_a_small_file_that_unpacks_to_much_is_streamed(table, capsys, monkeypatch):
    arguments = ["fit", table, "--target", "y", "-o", table.with_name("m"), "--quiet", "--json"]
    found = []
    for most in (8 * 500 * 2**20, 100):
        monkeypatch.setattr("pilae.cli.fit.MOST_BYTES", most)
        assert run(*arguments) == 0
        found.append(json.loads(capsys.readouterr().out))
    close(found[0]["leave_one_out"], found[1]["leave_one_out"], dtype="float32", terms=found[0]["rows"])
    assert found[0]["rows"] == found[1]["rows"]


def test_nothing_is_predicted_from_nothing(tmp_path, table, capsys):
    """An empty ARFF or Parquet file used to give an empty file of predictions."""
    model, out = tmp_path / "m.pilae", tmp_path / "p.csv"
    assert run("fit", table, "--target", "y", "-o", model, "--quiet") == 0
    columns = pa.table({"a": pa.array([], pa.float64()), "b": pa.array([], pa.float64())})
    pq.write_table(columns, tmp_path / "t.parquet")
    (tmp_path / "t.arff").write_text(arff(attributes=("a numeric", "b numeric")))
    (tmp_path / "none.csv").write_text("a,b\n")
    for name in ("t.parquet", "t.arff", "none.csv"):
        capsys.readouterr()
        assert run("predict", model, tmp_path / name, "-o", out) == 1
        assert "has no rows." in capsys.readouterr().err
        assert not out.exists()


def test_errors_of_the_system_name_the_file(tmp_path, table, capsys):
    assert run("predict", tmp_path / "nowhere.pilae", table) == 1
    assert capsys.readouterr().err == f"pilae: No such file or directory: {str(tmp_path / 'nowhere.pilae')!r}.\n"


def test_the_separator_typed_as_a_tab(tmp_path, table, capsys):
    path = tmp_path / "tabs.csv"
    path.write_text(table.read_text().replace(",", "\t"))
    assert run("fit", path, "--target", "y", "-o", tmp_path / "m", "--quiet", "--separator", "\\t") == 0


def test_rows_that_are_torn_are_left_out_where_that_is_asked_for(tmp_path, table, capsys):
    lines = table.read_text().splitlines()
    torn = tmp_path / "torn.csv"
    torn.write_text("\n".join([*lines[:20], "1,2", *lines[20:40], "1,2,3,4,5", *lines[40:]]) + "\n")
    arguments = ["fit", torn, "--target", "y", "-o", tmp_path / "m.pilae", "--quiet", "--json"]
    for allowed in ([], ["--skip-bad-rows", 1]):
        assert run(*arguments, *allowed) == 1
        assert "--skip-bad-rows how many such rows may be left out" in capsys.readouterr().err
    assert run(*arguments, "--skip-bad-rows", 2) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["remarks"] == [f"2 rows of {torn} with too many or too few cells are left out."]
    assert found["rows"] + found["held_out_rows"] == 150
    assert run("evaluate", tmp_path / "m.pilae", torn, "--skip-bad-rows", 5, "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 150
    assert run(*arguments, "--skip-bad-rows", -1) == 1
