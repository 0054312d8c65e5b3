"""Files of tables that are damaged, torn or built to break their reader: each from a seed, with what is known of it."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import pickle
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FORMATS = ("csv", "parquet", "arff", "npz")


class Case(NamedTuple):
    """A file, and what is known about it."""

    data: bytes
    ending: str
    expected: str
    """"same" (as `truth`), "error", or "any" of the two."""
    truth: bytes | None = None
    """A plain file of the same table."""
    what: str = ""


# ------------------------------------------------------------------------------------------------ tables to start from

WORDS = ["Ulm", "Köln", "a b", "naïve", "x" * 40, "日本", "<b>bold</b>", "=1+2", "it's", "50%", "-", "0x1F", "N.A."]
NAMES = [
    "a",
    "b",
    "size of it",
    "größe",
    "<script>alert(1)</script>",
    "=SUM(A1)",
    "x'y",
    "{z}",
    "%c",
    "@d",
    "ψ",
    "Unnamed",
]


def columns_of(rng: np.random.Generator) -> dict[str, list[Any]]:
    """A table: names and values (str, int, float, bool, date or None), the last column its target."""
    rows = int(rng.integers(2, 40))
    names = [str(name) for name in rng.permutation(NAMES)[: int(rng.integers(1, 6))]]
    kinds = ["numbers", "integers", "truth", "words", "dates", "tiny", "constant"]
    table: dict[str, list[Any]] = {}
    for name in names:
        kind = kinds[int(rng.integers(len(kinds)))]
        if kind == "numbers":
            values: list[Any] = [round(float(v), 4) for v in rng.normal(size=rows)]
        elif kind == "integers":
            values = rng.integers(-(10 ** int(rng.integers(1, 9))), 10**9, rows).tolist()
        elif kind == "truth":
            values = rng.choice([True, False], rows).tolist()
        elif kind == "words":
            values = [str(v) for v in rng.choice(WORDS, rows)]
        elif kind == "dates":
            days = rng.integers(0, 40_000, rows).astype("timedelta64[D]")
            values = (np.datetime64("1950-01-01") + days).astype(str).tolist()
        elif kind == "tiny":
            values = [float(v) for v in rng.normal(size=rows) * 10.0 ** rng.integers(-20, 20, rows)]
        else:
            values = [7.0] * rows
        if rng.random() < 0.3:
            values = [None if gap else value for value, gap in zip(values, rng.random(rows) < 0.3, strict=True)]
        table[name] = values
    table["y"] = rng.choice(["yes", "no"], rows).tolist() if rng.random() < 0.6 else rng.normal(size=rows).tolist()
    return table


# ----------------------------------------------------------------------------------------------------- bytes, mutated

TOKENS = [
    b"\0",
    b"\0\0\0\0",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b'"',
    b"'",
    b"\r",
    b"\n",
]
TOKENS += [
    b"1e999",
    b"-",
    b",",
    b",,,,,,,,",
    b"{",
    b"}",
    b"?",
    b"%",
    b"@data\n",
    b"nan",
    b"inf",
    b"\xc3\x28",
    b"\\",
    b"\t",
]
TOKENS += [b"9" * 400, b"\x80\x80\x80\x80\x10", b"@attribute q relational\n", b"0000-99-99", b"99999-01-01", b"PAR1"]


def mutated(data: bytes, other: bytes, rng: np.random.Generator, region: tuple[int, int] | None = None) -> bytes:
    """A few changes of the kinds that disks, networks and people make, and some that only enemies make."""
    found = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        low, high = (0, len(found)) if region is None else (min(region[0], len(found)), min(region[1], len(found)))
        at = int(rng.integers(low, max(high, low + 1)))
        end = at + int(rng.integers(1, 2 ** int(rng.integers(1, 10))))
        how = int(rng.integers(9))
        if how == 0:
            del found[at:]
        elif how == 1 and found:
            found[min(at, len(found) - 1)] ^= 1 << int(rng.integers(8))
        elif how == 2:
            found[at:at] = rng.bytes(end - at)
        elif how == 3:
            del found[at:end]
        elif how == 4:
            found[at:at] = found[at:end]
        elif how == 5:
            found[at:] = other[int(rng.integers(len(other) + 1)) :]
        elif how == 6:
            token = TOKENS[int(rng.integers(len(TOKENS)))]
            found[at : at + (len(token) if rng.random() < 0.5 else 0)] = token
        elif how == 7 and found:
            for place in rng.integers(low, max(high, low + 1), 8):
                found[min(int(place), len(found) - 1)] = int(rng.integers(256))
        else:
            found[at:end] = found[at:end][::-1]
    return bytes(found)


# ---------------------------------------------------------------------------------------------------------------- CSV


def csv_bytes(table: dict[str, list[Any]], **written: Any) -> bytes:
    """A CSV file; `written` says how."""
    text = io.StringIO()
    writer = csv.writer(
        text,
        delimiter=written.get("separator", ","),
        quoting=written.get("quoting", csv.QUOTE_MINIMAL),
        lineterminator=written.get("newline", "\n"),
    )
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    whole = text.getvalue()
    return whole.encode(written.get("encoding", "utf-8"))


PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".csv.gz": gzip.compress,
    ".csv.bz2": bz2.compress,
    ".csv.xz": lzma.compress,
    ".csv.zip": lambda data: zipped([("t.csv", data)], zipfile.ZIP_DEFLATED),
}


def csv_case(rng: np.random.Generator) -> Case:
    table = columns_of(rng)
    if len(table) == 2 and any(value is None for value in table[next(iter(table))]):
        table = {"filled": [1.0] * len(table["y"])} | table  # else rows might be blank lines
    plain = csv_bytes(table)
    how = rng.random()
    if how < 0.2:
        return _same_csv(table, plain, rng)
    if how < 0.5:
        return _torn_csv(table, plain, rng)
    other = csv_bytes(columns_of(rng))
    if how < 0.6:
        ending = str(rng.choice(list(PACKED)))
        return Case(mutated(PACKED[ending](plain), PACKED[ending](other), rng), ending, "any", what="compressed bytes")
    return Case(mutated(plain, other, rng), ".csv", "any", what="bytes")


def _same_csv(table: dict[str, list[Any]], plain: bytes, rng: np.random.Generator) -> Case:
    """The same table, written in another way."""
    written: dict[str, Any] = {
        "newline": rng.choice(["\n", "\r\n", "\r"]),
        "quoting": int(rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])),
        "encoding": str(rng.choice(["utf-8", "utf-8-sig", "utf-16"])),
        "separator": str(rng.choice([",", ";", "\t", "|"])),
    }
    if len(table) == 2 and written["separator"] != ",":
        written["separator"] = ","
    data = csv_bytes(table, **written)
    if rng.random() < 0.3:  # blank lines mean nothing
        mark = written["newline"].encode(written["encoding"].removesuffix("-sig"))[
            -2 if "16" in written["encoding"] else 0 :
        ]
        if "16" not in written["encoding"]:
            data += mark * int(rng.integers(1, 4))
    if rng.random() < 0.2:
        return Case(gzip.compress(data), ".csv.gz", "same", plain, f"written as {written}, compressed")
    return Case(data, ".csv", "same", plain, f"written as {written}")


def _torn_csv(table: dict[str, list[Any]], plain: bytes, rng: np.random.Generator) -> Case:
    """Cells and names as people spoil them."""
    rows = [list(table), *(list(row) for row in zip(*table.values(), strict=True))]
    at = int(rng.integers(len(rows)))
    column = int(rng.integers(len(rows[0])))
    how = int(rng.integers(12))
    expected = "error"
    if how == 0:
        del rows[max(at, 1)][column]  # a cell less
    elif how == 1:
        rows[max(at, 1)].insert(column, "more")
    elif how == 2:
        for number, row in enumerate(rows[1:]):
            row.insert(0, number)  # every row too long: pandas alone would make labels of the first cells
    elif how == 3:
        rows[0][column] = rows[0][column - 1]  # two columns of one name
    elif how == 4:
        rows[max(at, 1)][column] = "nul\0inside"
    elif how == 5:
        rows[max(at, 1)] = []  # a blank line is no row
        expected = "any"
    elif how == 6:
        rows[1].insert(column, 1)  # one longer, one shorter: as many cells as there should be
        del rows[-1][0]
        expected = "any" if len(rows) == 2 else "error"
    elif how == 7:
        rows[max(at, 1)][column] = ["1e999", "99999-99-99", "0" * 5000, "-" * 300, "=cmd|'/C calc'!A0", "9" * 400][
            at % 6
        ]
        expected = "any"
    elif how == 8:
        rows[0] = ["" for _ in rows[0]]
        expected = "any"
    elif how == 9:
        rows = [row * 12 for row in rows]
        rows[0] = [f"{name}{k}" for k, name in enumerate(rows[0])]
        expected = "any"
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    data = text.getvalue().encode()
    if how == 10:
        lines = data.split(b"\n")
        lines[at] = b'"' + lines[at]  # a quote that nothing closes, or that closes somewhere else
        return Case(b"\n".join(lines), ".csv", "any", what="open quote")
    if how == 11:
        return Case(data[: len(data) // 2] + b"\xff\xfe\xfa" + data[len(data) // 2 :], ".csv", "error", what="no UTF-8")
    return Case(data, ".csv", expected, what=f"cells, way {how}")


# -------------------------------------------------------------------------------------------------------- ARFF


def arff_bytes(table: dict[str, list[Any]], quote: str = "'", newline: str = "\n", blanks: str = "") -> bytes:
    def word(value: Any) -> str:
        if value is None:
            return "?"
        if isinstance(value, str):
            return quote + value.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote
        return repr(value)

    lines = ["% made up", "@relation 'r s'"]
    for name, values in table.items():
        there = [value for value in values if value is not None]
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in there):
            kind = "numeric"
        elif there and all(re.fullmatch(r"\d{4}-\d\d-\d\d", str(value)) for value in there):
            kind = "date 'yyyy-MM-dd'"
        elif len(set(map(str, there))) > 10:
            kind = "string"
        else:
            kind = "{" + ",".join(word(value) for value in sorted(set(map(str, there)))) + "}"
        lines.append(f"@attribute {word(name)} {kind if kind != '{}' else 'numeric'}")
    lines += ["", "@data"]
    for row in zip(*table.values(), strict=True):
        cells = [word(str(value) if isinstance(value, bool) else value) for value in row]
        lines.append(("," + blanks).join(cells))
    return (newline.join(lines) + newline).encode()


def arff_case(rng: np.random.Generator) -> Case:
    table = columns_of(rng)
    plain = arff_bytes(table)
    how = rng.random()
    if how < 0.2:
        written = {
            "quote": str(rng.choice(["'", '"'])),
            "newline": str(rng.choice(["\n", "\r\n", "\r"])),
            "blanks": "  ",
        }
        start = b"\xef\xbb\xbf" if rng.random() < 0.3 else b""
        return Case(start + arff_bytes(table, **written), ".arff", "same", plain, f"written as {written}")
    if how < 0.5:
        lines = plain.split(b"\n")
        first = lines.index(b"@data") + 1
        at = int(rng.integers(first, len(lines) - 1))
        spoilt = {
            "a value more": (at, lines[at] + b",1", "error"),
            "a value less": (at, lines[at].rpartition(b",")[0] if b"," in lines[at] else b"1,1,1,1,1,1,1,1", "any"),
            "sparse": (at, b"{0 1, 1 2}", "error"),
            "weighted": (at, lines[at] + b", {5}", "error"),
            "relational": (2, b"@attribute (a+)+b relational", "error"),
            "twice": (3, lines[2], "any" if first == 5 else "error"),
            "no number": (at, lines[at].replace(b"1", b"1?2_3"), "any"),
            "huge list": (2, b"@attribute q {" + b",".join(b"v%d" % k for k in range(50_000)) + b"}", "any"),
            "open list": (2, b"@attribute q {a,b", "error"),
            "odd date": (2, b"@attribute q date 'QQ%Z%j'", "error"),
            "no type": (2, b"@attribute q", "error"),
            "no data": (first - 1, b"% gone", "error"),
            "long": (at, b"1," * 20_000, "error"),
            "open quote": (at, b"'" + lines[at], "any"),
        }
        what = str(rng.choice(list(spoilt)))
        place, line, expected = spoilt[what]
        lines[place] = line
        return Case(b"\n".join(lines), ".arff", expected, what=what)
    return Case(mutated(plain, arff_bytes(columns_of(rng)), rng), ".arff", "any", what="bytes")


# ----------------------------------------------------------------------------------------------------- Parquet


def arrow_table(table: dict[str, list[Any]]) -> pa.Table:
    return pa.table({name: pa.array(values) for name, values in table.items()})


def parquet_bytes(table: pa.Table, **written: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **written)
    return sink.getvalue()


def parquet_case(rng: np.random.Generator) -> Case:
    table = arrow_table(columns_of(rng))
    plain = parquet_bytes(table)
    how = rng.random()
    if how < 0.15:
        written: dict[str, Any] = {
            "compression": str(rng.choice(["none", "snappy", "gzip", "zstd", "lz4", "brotli"])),
            "use_dictionary": bool(rng.random() < 0.5),
            "row_group_size": int(rng.integers(1, 50)),
            "data_page_version": str(rng.choice(["1.0", "2.0"])),
            "write_page_checksum": bool(rng.random() < 0.5),
            "data_page_size": int(rng.choice([64, 2**20])),
        }
        return Case(parquet_bytes(table, **written), ".parquet", "same", plain, f"written as {written}")
    if how < 0.35:
        return _odd_parquet(table, rng)
    if rng.random() < 0.5:
        plain = parquet_bytes(table, compression="none", write_page_checksum=bool(rng.random() < 0.3))
    other = parquet_bytes(arrow_table(columns_of(rng)))
    footer = int.from_bytes(plain[-8:-4], "little")
    region = (len(plain) - 8 - footer, len(plain)) if rng.random() < 0.5 else None
    return Case(mutated(plain, other, rng, region), ".parquet", "any", what="bytes")


def _odd_parquet(table: pa.Table, rng: np.random.Generator) -> Case:
    """Types and notes that no reader of tables expects."""
    n = table.num_rows
    columns = {
        "lists": (pa.array([[1, 2]] * n), "error"),
        "records": (pa.array([{"a": 1}] * n), "error"),
        "maps": (pa.array([[("a", 1)]] * n, pa.map_(pa.string(), pa.int64())), "error"),
        "far dates": (pa.array([2**52] * n, pa.timestamp("s")), "any"),
        "early days": (pa.array([-(2**30)] * n, pa.date32()), "any"),
        "spans": (pa.array([2**62] * n, pa.duration("ns")), "any"),
        "times": (pa.array([1] * n, pa.time64("us")), "any"),
        "bytes": (pa.array([b"\xff\xfe\x00"] * n), "error"),
        "bad text": (pa.array([b"\xff\xc3\x28"] * n).view(pa.string()), "error"),
        "nothing": (pa.nulls(n), "any"),
        "large": (pa.array([2**64 - 1] * n, pa.uint64()), "any"),
        "half": (pa.array(np.full(n, 1.5, np.float16)), "any"),
        "decimals": (pa.array([10**37] * n, pa.decimal128(38, 0)), "any"),
        "categories": (pa.array(["a"] * n).dictionary_encode(), "any"),
        "zoned": (pa.array([0] * n, pa.timestamp("us", "Not/AZone")), "any"),
        "nan": (pa.array([float("nan")] * n), "any"),
    }
    notes = [b"{", b"[]", b'{"index_columns": [{"kind": "x"}], "columns": [1]}', b'{"index_columns": 5}', b"\xff"]
    notes += [
        b"[" * 5000,
        b'{"index_columns": ["y"], "column_indexes": [{"numpy_type": "nonsense", "pandas_type": "q"}]}',
    ]
    how = str(rng.choice([*columns, "twice", "no rows", "no columns", "notes", "extension", "many"]))
    expected = "any"
    if how in columns:
        column, expected = columns[how]
        table = table.append_column("odd", column)
    elif how == "twice":
        table, expected = table.append_column(table.column_names[0], table.column(0)), "error"
    elif how == "no rows":
        table, expected = table.slice(0, 0), "error"
    elif how == "no columns":
        table, expected = table.select([]), "error"
    elif how == "notes":
        table = table.replace_schema_metadata({b"pandas": notes[int(rng.integers(len(notes)))]})
    elif how == "extension":
        note = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": Marker.pickled()}
        table = table.append_column(pa.field("odd", pa.int64(), metadata=note), pa.array([1] * n))
    else:
        table = pa.table({f"c{k}": [1.0] * 3 for k in range(500)} | {"y": [1.0, 2.0, 3.0]})
    return Case(parquet_bytes(table), ".parquet", expected, what=how)


# --------------------------------------------------------------------------------------------------------- npz


class Marker:
    """Pickled, it would write a file when it is loaded."""

    path = ""

    def __reduce__(self) -> Any:
        return (open, (Marker.path, "w"))

    @staticmethod
    def pickled() -> bytes:
        return pickle.dumps(Marker())


def npz_arrays(table: dict[str, list[Any]]) -> dict[str, np.ndarray]:
    arrays = {}
    for k, (name, values) in enumerate(table.items()):
        numbers = all(isinstance(value, (int, float, type(None))) for value in values)
        filled = (
            [np.nan if value is None else value for value in values] if numbers else [str(value) for value in values]
        )
        arrays[name if name == "y" else f"c{k}"] = np.array(filled)
    return arrays


def npz_bytes(arrays: dict[str, np.ndarray], compressed: bool = False) -> bytes:
    sink = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(sink, **arrays)
    return sink.getvalue()


def npy(header: Any, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    text = header if isinstance(header, bytes) else repr(header).encode()
    length = struct.pack("<H" if version == (1, 0) else "<I", min(len(text), 65535 if version == (1, 0) else 2**32 - 1))
    return b"\x93NUMPY" + bytes(version) + length + text + data


def zipped(members: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    sink = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(sink, "w", method) as archive:
        warnings.simplefilter("ignore")  # a name twice
        for name, data in members:
            archive.writestr(name, data)
    return sink.getvalue()


def npz_case(rng: np.random.Generator) -> Case:
    arrays = npz_arrays(columns_of(rng))
    plain = npz_bytes(arrays)
    how = rng.random()
    if how < 0.15:
        other = {name: np.asfortranarray(array.astype(array.dtype.newbyteorder(">"))) for name, array in arrays.items()}
        return Case(npz_bytes(other, bool(rng.random() < 0.5)), ".npz", "same", plain, "big-endian, perhaps compressed")
    if how < 0.45:
        return _odd_npz(plain, arrays, rng)
    other_bytes = npz_bytes(npz_arrays(columns_of(rng)), bool(rng.random() < 0.5))
    start = npz_bytes(arrays, bool(rng.random() < 0.5))
    region = (len(start) - 80 * len(arrays) - 22, len(start)) if rng.random() < 0.4 else None
    return Case(mutated(start, other_bytes, rng, region), ".npz", "any", what="bytes")


def _odd_npz(plain: bytes, arrays: dict[str, np.ndarray], rng: np.random.Generator) -> Case:
    """Members that are not what they say, or that nobody wants."""
    n = len(arrays["y"])
    y = io.BytesIO()
    np.save(y, arrays["y"])

    def saying(descr: str, shape: Any, data: bytes = b"") -> bytes:
        return npy({"descr": descr, "fortran_order": False, "shape": shape}, data)

    objects = saying("|O", (n,), pickle.dumps(np.array([Marker()] * n, dtype=object)))
    odd: dict[str, tuple[bytes, str]] = {
        "huge": (saying("<f8", (10**12,)), "error"),
        "huge, no bytes": (saying("<f8", (10**15, 0)), "any"),
        "empty text": (saying("<U0", (10**12,)), "error"),
        "negative": (saying("<f8", (-1, 8), b"\0" * 64), "error"),
        "overflowing": (saying("<f8", (2**62, 4)), "error"),
        "pickle": (objects, "error"),
        "bare pickle": (Marker.pickled(), "error"),
        "records": (saying("[('a', '<f8')]", (n,), b"\0" * 8 * n), "error"),
        "complex": (saying("<c16", (n,), b"\0" * 16 * n), "error"),
        "far dates": (saying("<M8[Y]", (n,), struct.pack("<q", 2**60) * n), "any"),
        "no unit": (saying("<M8", (n,), struct.pack("<q", 5) * n), "any"),
        "no characters": (saying("<U1", (n,), struct.pack("<I", 0x7FFFFFFF) * n), "error"),
        "surrogates": (saying("<U1", (n,), struct.pack("<I", 0xD800) * n), "error"),
        "no truth": (saying("|b1", (n,), b"\x07" * n), "error"),
        "bad text": (saying("|S2", (n,), b"\xff\xc3" * n), "error"),
        "nested header": (npy(b"(" * 5000), "error"),
        "unclosed header": (npy(b"{'descr': '''<f8, 'shape': (1,"), "error"),
        "long header": (npy(b" " * 60_000), "error"),
        "code": (npy(b"{'descr': __import__('os').system('touch " + Marker.path.encode() + b"')}"), "error"),
        "later": (npy({"descr": "<f8"}, b"", (9, 0)), "error"),
        "short": (saying("<f8", (n,), b"\0" * (8 * n - 1)), "error"),
        "scalar": (saying("<f8", (), b"\0" * 8), "any"),
        "no number": (saying("<f8", ("a",), b"\0" * 8), "error"),
        "nothing": (b"", "error"),
    }
    what = str(
        rng.choice([*odd, "lone npy", "names", "twice", "no members", "method", "locked", "lying", "cube", "text X"])
    )
    if what in odd:
        data, expected = odd[what]
        name = "X.npy" if rng.random() < 0.5 else "c.npy"
        method = zipfile.ZIP_DEFLATED if rng.random() < 0.5 else zipfile.ZIP_STORED
        return Case(zipped([(name, data), ("y.npy", y.getvalue())], method), ".npz", expected, what=what)
    good = y.getvalue()
    if what == "lone npy":
        return Case(good, ".npz", "error", what=what)
    if what == "names":
        return Case(zipped([("../../../tmp/evil.npy", good), ("y.npy", good)]), ".npz", "any", what=what)
    if what == "twice":
        return Case(zipped([("y.npy", good), ("y.npy", good)]), ".npz", "error", what=what)
    if what == "no members":
        return Case(zipped([]), ".npz", "error", what=what)
    if what == "cube":
        return Case(npz_bytes({"X": np.ones((n, 2, 2)), "y": arrays["y"]}), ".npz", "any", what=what)
    if what == "text X":
        return Case(
            npz_bytes({"X": np.full((n, 2), "a"), "y": arrays["y"], "x1": arrays["y"]}), ".npz", "error", what=what
        )
    at = plain.rindex(b"PK\x01\x02")
    found = bytearray(plain)
    if what == "method":
        found[at + 10 : at + 12] = struct.pack("<H", 99)
    elif what == "locked":
        found[at + 8] |= 1
    else:
        found[at + 24 : at + 28] = struct.pack("<I", 2**32 - 2)  # its size
    return Case(bytes(found), ".npz", "error", what=what)


CASES: dict[str, Callable[[np.random.Generator], Case]] = {
    "csv": csv_case,
    "parquet": parquet_case,
    "arff": arff_case,
    "npz": npz_case,
}


def case(format: str, seed: int) -> Case:
    return CASES[format](np.random.default_rng([FORMATS.index(format), seed]))


def house(rows: int = 60) -> dict[str, list[Any]]:
    """What the models of the commands were fitted on."""
    rng = np.random.default_rng(7)
    size, town = rng.uniform(40, 200, rows), rng.choice(["Ulm", "Köln", "Aachen"], rows)
    days = rng.integers(0, 20_000, rows)
    return {
        "size": [round(float(v), 2) for v in size],
        "town": town.tolist(),
        "built": [str(np.datetime64("1960-01-01") + np.timedelta64(int(k), "D")) for k in days],
        "garden": rng.choice([True, False], rows).tolist(),
        "price": [round(float(3 * s + 90 * (t == "Köln")), 1) for s, t in zip(size, town, strict=True)],
        "y": ["large" if s > 120 else "small" for s in size],
    }


def command_case(seed: int) -> Case:
    """A table for a model that knows its columns."""
    rng = np.random.default_rng([77, seed])
    table = house()
    write = {".csv": csv_bytes, ".arff": arff_bytes, ".parquet": lambda columns: parquet_bytes(arrow_table(columns))}
    ending = str(rng.choice(list(write)))
    how = rng.random()
    if how < 0.3:  # names say what is what, not the order
        return Case(write[ending]({name: table[name] for name in rng.permutation(list(table))}), ending, "same")
    if how < 0.6:
        return _torn_csv(table, csv_bytes(table), rng)
    return Case(mutated(write[ending](table), write[ending](house(20)), rng), ending, "any")


# ----------------------------------------------------------------------------------------------------------- bombs


def zeros(megabytes: int) -> bytes:
    """So many megabytes of zeros as a raw deflate stream, without making them all: a thousandth of their size."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + again * (megabytes - 1) + packer.flush()


def npz_bomb(path: Path, megabytes: int, members: int, honest: bool) -> None:
    """Arrays of zeros that unpack to a thousand times the file, and say so (or say that they are small)."""
    rows = (megabytes - 1) * 2**17 if honest else 8
    header = npy({"descr": "<f8", "fortran_order": False, "shape": (rows,)})
    size = len(header) + rows * 8
    stream = zlib.compressobj(0, zlib.DEFLATED, -15)
    data = stream.compress(header) + stream.flush(zlib.Z_FULL_FLUSH) + zeros(megabytes)
    body, directory = b"", b""
    for k in range(members):
        name = f"c{k}.npy".encode()
        local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 8, 0, 0, 0, len(data), size, len(name), 0) + name
        directory += struct.pack(
            "<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 8, 0, 0, 0, len(data), size, len(name), 0, 0, 0, 0, 0, len(body)
        )
        directory += name
        body += local + data
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, members, members, len(directory), len(body), 0)
    path.write_bytes(body + directory + end)


def gzip_bomb(path: Path, megabytes: int) -> None:
    """One line without an end."""
    path.write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\3" + zeros(megabytes) + bytes(8))


def spaces_bomb(path: Path, megabytes: int) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"a,y\n")
        for _ in range(megabytes):
            file.write(b" " * 2**20)


def open_quote(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b'a,y\n1,"')
        for _ in range(100):
            file.write(b"2,3\n" * 2**18)


def wide_csv(path: Path, columns: int) -> None:
    path.write_bytes(b",".join(b"c%d" % k for k in range(columns)) + b"\n" + b",".join([b"1"] * columns) + b"\n")


def wide_npz(path: Path, columns: int) -> None:
    np.savez(path.open("wb"), X=np.ones((3, columns)), y=np.arange(3.0))


def wide_arff(path: Path, columns: int) -> None:
    lines = [
        b"@relation r",
        *(b"@attribute c%d numeric" % k for k in range(columns)),
        b"@data",
        b",".join([b"1"] * columns),
    ]
    path.write_bytes(b"\n".join(lines))


def long_parquet(path: Path, rows: int) -> None:
    """A kilobyte for a million rows."""
    table = pa.table({"a": np.zeros(rows), "y": np.zeros(rows)})
    pq.write_table(table, path, row_group_size=rows, compression="zstd", use_dictionary=True)


def long_text_parquet(path: Path, megabytes: int) -> None:
    """One value, many megabytes long, in every row."""
    table = pa.table(
        {"a": pa.array(["x" * (megabytes * 2**20)] * 50, pa.large_string()).dictionary_encode(), "y": [1.0] * 50}
    )
    pq.write_table(table, path, compression="zstd")


BOMBS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "columns.csv": ("error", lambda path: wide_csv(path, 10**6)),
    "small.npz": ("error", lambda path: npz_bomb(path, 200, 2, honest=False)),
    "line.csv.gz": ("error", lambda path: gzip_bomb(path, 2000)),
    "memory.npz": ("error", lambda path: npz_bomb(path, 3900, 1, honest=True)),
    "machine.npz": ("error", lambda path: npz_bomb(path, 3900, 40, honest=True)),
    "spaces.csv.gz": ("error", lambda path: spaces_bomb(path, 300)),
    "quote.csv": ("error", open_quote),
    "columns.npz": ("error", lambda path: wide_npz(path, 10**6)),
    "columns.arff": ("error", lambda path: wide_arff(path, 10**6)),
    "many.csv": ("rows", lambda path: wide_csv(path, 20_000)),
    "long.parquet": ("rows", lambda path: long_parquet(path, 5_000_000)),
    "text.parquet": ("rows", lambda path: long_text_parquet(path, 4)),
}
