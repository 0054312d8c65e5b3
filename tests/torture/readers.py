"""Hostile tables: whatever a CSV, Parquet, ARFF or npz file holds, it is read rightly or refused in one sentence.

Files of many kinds are built from known tables and mutated, cell by cell and byte by byte. Reading one must end in rows
or in one error class with one sentence; a row that is too short or too long is an error, never a guess; a file that is
only written in another way gives the same rows; memory and time are bounded; no code in a file runs.

    PYTHONPATH=tests python -m torture.readers csv 123    # the file with this seed, written and read again
"""

from __future__ import annotations

import contextlib
import csv
import faulthandler
import io
import json
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pilae import cli, scan_csv, scan_parquet
from pilae._data.tables import Table, is_mixed
from pilae._tables import files
from pilae._tables.errors import TableError
from pilae._tables.file_columns import FileColumns
from torture.harness import Broken, spread
from torture.hostile.arguments import argument_case
from torture.hostile.tables import BOMBS, FORMATS, Case, Marker, case, command_case, csv_bytes, house

QUICK = {"files": 100, "commands": 12, "arguments": 40, "bombs": 3}
FULL = {"files": 10_000, "commands": 400, "arguments": 2_000, "bombs": 12}

SECONDS = 60.0
"""Of processor time, for one file: a guard against files that are never done with, not a measure of speed. The slowest
file of a full run takes 0.45, the slowest bomb 3.5, a command 3: they get more than 100 times that."""

HUNG = 3600.0
"""Seconds by the clock after which a process that processor time cannot end is ended: one that waits for ever, or a
library that never comes back to Python. So many that no busy machine meets them."""

MEGABYTES = 2500
"""What a process may take on top of what it has at the start; more is a MemoryError in it."""

GROWN = 500
"""Megabytes that reading such small files, or bombs, may take at most."""

CHUNK = 50

AGAIN = "see again: PYTHONPATH=tests python -m torture.readers"
"""pytest runs whole parts: one file of them is read again alone."""


class TooSlow(BaseException):
    """Not an Exception: no reader may take it for damage."""


# ------------------------------------------------------------------------------------------------------- reading them


CLASS = re.compile(r"\b[A-Z]\w*(Error|Exception)\b|\bArrow[A-Z]\w+| at 0x[0-9a-f]+")


def check_sentence(error: BaseException, known: tuple[type[BaseException], ...]) -> None:
    text = " ".join(str(error).split())
    if not isinstance(error, known):
        raise Broken(f"{type(error).__name__} instead of {known[0].__name__}: {text[:300]}") from error
    if isinstance(error, MemoryError):
        return
    if not text or text[-1] not in ".?!)" or len(text) > 900 or "Traceback" in text or CLASS.search(text):
        raise Broken(f"no sentence for people: {text[:300]!r}") from error


def rows_of(path: str, rows: int) -> pd.DataFrame:
    """All rows as `pilae fit` reads them, in pieces of so many."""
    table = files.TableFile(path, target="y")
    return pd.concat(list(table.pieces(rows)), ignore_index=True)


def read(path: Path, made: Case) -> str:
    """Read a file as `pilae fit` does, up to the numbers that the network takes; "rows" or "error"."""
    table = files.TableFile(str(path), target="y")
    try:
        sample = table.sample()
        table.size()
        whole = rows_of(str(path), 7)
    except Exception as error:
        check_sentence(error, (TableError, MemoryError))
        if made.expected == "same":
            raise Broken(f"a good file is refused: {error}") from error
        return "error"
    if made.expected == "error":
        raise Broken(f"read without a word: {whole.shape} of {list(whole)[:5]}")
    if not whole.equals(sample.astype(whole.dtypes)):
        raise Broken(f"pieces of 7 rows give another table than whole ones: {whole.shape}, {sample.shape}")
    if len(set(whole.columns)) != whole.shape[1] or not all(isinstance(name, str) for name in whole.columns):
        raise Broken(f"the columns cannot be told apart: {list(whole)[:5]}")
    if made.ending == ".csv":
        check_rows(made.data, table, whole)
    if made.truth is not None:
        plain = path.with_name(f"plain-{path.name.removesuffix('.gz')}")
        plain.write_bytes(made.truth)
        truth = rows_of(str(plain), 10**6)
        plain.unlink()
        if not truth.equals(whole):
            raise Broken(f"the same table reads differently:\n{truth}\n{whole}")
    target = "y" if "y" in whole else str(whole.columns[-1])
    try:
        columns = FileColumns.found(sample, target, None, None, len(sample))
        parts = [part.X for part in files.parts_of(table, columns, 0.0, "all")]
        count = sum(map(len, parts))
        if is_mixed(sample[columns.columns]):
            made = Table.learnt(sample[columns.columns])
            count = sum(len(made(part)) for part in parts)
    except Exception as error:
        check_sentence(error, (ValueError, MemoryError))
        return "rows"
    if count != int(whole[target].notna().sum()):
        raise Broken(f"{count} of {int(whole[target].notna().sum())} rows with a target became numbers")
    return "rows"


def scanned(path: Path, ending: str) -> None:
    """The same file through `scan_csv` or `scan_parquet`, which Python users call: rows, or a ValueError."""
    scan = {".csv": scan_csv, ".parquet": scan_parquet}.get(ending)
    if scan is not None:
        with contextlib.suppress(ValueError):
            for piece in scan(path, "y").read():
                if piece.y is not None and len(piece.X) != len(piece.y):
                    raise Broken(f"{len(piece.X)} rows with {len(piece.y)} targets")


def check_rows(data: bytes, table: files.TableFile, whole: pd.DataFrame) -> None:
    """Python's own CSV reader finds as many rows, each as long as the header."""
    separator, encoding, _ = table._csv.dialect
    text = io.StringIO(data.decode(encoding), newline="")
    rows = [row for row in csv.reader(text, delimiter=separator, skipinitialspace=True) if row and row != [""]]
    lengths = Counter(map(len, rows))
    if len(lengths) != 1 or len(rows) != len(whole) + 1:
        raise Broken(f"{len(whole)} rows of {whole.shape[1]} cells, but Python's csv finds {len(rows)}: {lengths}")


@contextlib.contextmanager
def bounded(seconds: float = SECONDS) -> Iterator[None]:
    """Processor time is limited; what hangs nevertheless ends the process."""

    def stop(*_: Any) -> None:
        raise TooSlow(f"more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    faulthandler.dump_traceback_later(HUNG, exit=True)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGPROF, before)


def limit_memory() -> None:
    there = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (there + MEGABYTES * 2**20, resource.getrlimit(resource.RLIMIT_AS)[1]))


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def try_files(item: tuple[str, str, int, int]) -> Counter:
    """The files of some seeds, in a process of their own."""
    folder, format, first, last = item
    limit_memory()
    before, slowest, found = peak(), 0.0, Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries about bad files; the command line does not show them either
        for seed in range(first, last):
            made = case(format, seed)
            path = Path(folder) / f"{format}-{seed}{made.ending}"
            path.write_bytes(made.data)
            start = time.process_time()
            try:
                with bounded():
                    found[f"{format}: {read(path, made)}"] += 1
                    if seed % 4 == 0:
                        scanned(path, made.ending)
            except (Exception, TooSlow) as error:
                raise Broken(f"{AGAIN} {format} {seed} ({made.what}): {error}") from error
            slowest = max(slowest, time.process_time() - start)
            path.unlink()
    note(folder, item, slowest, peak() - before)
    return found


def note(folder: str, item: tuple, seconds: float, megabytes: float) -> None:
    """For the parent, which takes the largest of them."""
    name = "-".join(map(str, item[1:]))
    (Path(folder) / f"{name}.note").write_text(json.dumps([seconds, megabytes]))


def try_bomb(item: tuple[str, str]) -> Counter:
    """Read a file that is small and means to be large, as `pilae predict` and `fit` do: piece by piece."""
    folder, name = item
    expected, make = BOMBS[name]
    path = Path(folder) / name
    make(path)
    limit_memory()
    before = peak()
    try:
        with bounded(8 * SECONDS):  # megabytes have to be unpacked before anything can be said
            rows = sum(len(piece) for piece in files.TableFile(str(path), target="y").pieces())
            found = "rows" if rows else "nothing"
    except (TableError, MemoryError) as error:
        check_sentence(error, (TableError, MemoryError))
        found = "error"
    if found != expected:
        raise Broken(f"{name} ended in {found} instead of {expected}")
    path.unlink()
    note(folder, item, 0.0, peak() - before)
    return Counter({f"bombs: {found}": 1})


# ------------------------------------------------------------------------------------------- the commands themselves


class Said(NamedTuple):
    code: int
    out: str
    err: str


def run_command(*arguments: Any, stdin: bytes = b"") -> Said:
    """`pilae ...` in this process, with what it wrote."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape") for _ in range(2))
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin)))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("default")  # as at a command line, where the tests would have errors
            try:
                code = cli.main([str(argument) for argument in arguments])
            except SystemExit as stop:  # argparse: wrong usage, --help
                code = int(stop.code or 0)
    finally:
        sys.stdin = before
    for stream in (out, err):
        stream.flush()
    texts = [stream.buffer.getvalue().decode("utf-8", "replace") for stream in (out, err)]  # type: ignore[attr-defined]
    return Said(code, *texts)


def check_said(said: Said, output: Path | None = None) -> None:
    """Exit status 0, or 1 with one sentence and no file, or 2 with how it is used."""
    if "Traceback" in said.err + said.out:
        raise Broken(f"a traceback: {said.err[-500:]}")
    if said.code == 2 and said.err.startswith("usage:"):
        return
    if said.code not in (0, 1):
        raise Broken(f"exit status {said.code}: {said.err[-300:]}")
    if said.code == 0:
        return
    if said.err.count("\n") != 1 or not said.err.startswith("pilae: ") or len(said.err) < 20:
        raise Broken(f"not one sentence on standard error: {said.err[-600:]!r}")
    check_sentence(ValueError(re.sub(r"'[^']*'|\"[^\"]*\"", "''", said.err)), (ValueError,))
    if output is not None and output.exists():
        raise Broken(f"{output.name} was written although {said.err!r}")


def models(folder: Path) -> None:
    """The two models that predict and evaluate are tried with, and what they say of a good table."""
    (folder / "house.csv").write_bytes(csv_bytes(house()))
    for name, target in (("kinds", "y"), ("prices", "price")):
        said = run_command(
            "fit", folder / "house.csv", "--target", target, "-o", folder / f"{name}.pilae", "--quiet",
            "--columns", "size,town,built,garden",
        )  # fmt: skip
        said_too = run_command("predict", folder / f"{name}.pilae", folder / "house.csv", "-o", folder / f"{name}.csv")
        if said.code or said_too.code:
            raise Broken(f"a good table is refused: {said.err}{said_too.err}")


def try_commands(item: tuple[str, str, int, int]) -> Counter:
    """fit, predict and evaluate on mutated tables, from the arguments to the files they write."""
    folder, _, first, last = Path(item[0]), *item[1:]
    limit_memory()
    found: Counter = Counter()
    for seed in range(first, last):
        command = ("predict", "evaluate", "predict", "fit", "evaluate", "predict")[seed % 6]
        model = ("kinds", "prices")[seed // 6 % 2]
        made = command_case(seed)
        if command == "fit" and seed % 12 == 3:
            made = case(FORMATS[seed // 12 % 4], 10**6 + seed)
        path, out = folder / f"command-{seed}{made.ending}", folder / f"out-{seed}"
        path.write_bytes(made.data)
        table = "-" if made.ending == ".csv" and seed % 5 == 0 else path
        if command == "fit":
            arguments = ["fit", table, "--target", "y", "-o", out, "--quiet"]
        elif command == "predict":
            arguments = ["predict", folder / f"{model}.pilae", table, "-o", out]
        else:
            arguments = ["evaluate", folder / f"{model}.pilae", table]
        try:
            with bounded(12 * SECONDS):
                said = run_command(*arguments, stdin=made.data)
            check_said(said, out)
            if made.expected == "same" and said.code:
                raise Broken(f"a good table is refused: {said.err}")
            if made.expected == "error" and not said.code:
                raise Broken(f"a torn table was taken without a word: {said.out}")
            if command == "predict" and made.expected == "same":
                check_predictions(out, folder / f"{model}.csv")
        except (Exception, TooSlow) as error:
            raise Broken(f"{AGAIN} {command} {seed} ({made.what}): {error}") from error
        found[f"commands: exit status {said.code}"] += 1
        for name in (path, out):
            name.unlink(missing_ok=True)
    return found


def check_predictions(found: Path, expected: Path) -> None:
    a, b = pd.read_csv(found), pd.read_csv(expected)
    same = (
        a.equals(b)
        if a.dtypes.iloc[0].kind == "O" or not len(a)
        else np.allclose(a.select_dtypes("number"), b.select_dtypes("number"))
    )
    if a.shape != b.shape or not same:
        raise Broken("the same rows, written in another way, are predicted differently")


def try_arguments(item: tuple[str, str, int, int]) -> Counter:
    folder, _, first, last = Path(item[0]), *item[1:]
    limit_memory()
    found: Counter = Counter()
    for seed in range(first, last):
        words, stdin = argument_case(seed, folder)
        try:
            with bounded(12 * SECONDS):
                said = run_command(*words, stdin=stdin)
            check_said(said)
        except (Exception, TooSlow) as error:
            raise Broken(f"argument_case({seed}): pilae {' '.join(map(repr, words))}: {error}") from error
        found[f"arguments: exit status {said.code}"] += 1
        for path in folder.glob(f"argument-{seed}*"):
            path.unlink()
    return found


# ------------------------------------------------------------------------------------------------------------- all


def run(files: int, commands: int, arguments: int, bombs: int) -> dict[str, Any]:
    """Every format with so many files, then the commands and their arguments."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        return _run(Path(name), files, {"commands": commands, "arguments": arguments}, bombs)


def _run(folder: Path, files: int, counts: dict[str, int], bombs: int) -> dict[str, Any]:
    Marker.path = str(folder / "marker")
    chunks = [(first, min(first + CHUNK, files)) for first in range(0, files, CHUNK)]
    try:
        found = spread(try_files, [(str(folder), format, *chunk) for chunk in chunks for format in FORMATS])
        found += spread(try_bomb, [(str(folder), name) for name in list(BOMBS)[:bombs]])
        models(folder)
        odd = {"a": [1.0, 2.0] * 20, "<b>": ["x", "y"] * 20, "": [None, 3] * 20, "é": [5] * 40}
        (folder / "odd.csv").write_bytes(csv_bytes(odd))
        for part, function in (("commands", try_commands), ("arguments", try_arguments)):
            step = max(1, min(CHUNK, counts[part] // 4))
            items = [(str(folder), part, k, min(k + step, counts[part])) for k in range(0, counts[part], step)]
            found += spread(function, items)
    except Broken as error:
        left = sorted(path.name for path in folder.iterdir() if re.match(r"[a-z]+-\d+\.(?!note)", path.name))
        raise Broken(f"{error} (files being read: {left}; {AGAIN} FORMAT SEED)") from error
    if Path(Marker.path).exists():
        raise Broken("a pickle in a file was loaded: its code has run")
    notes = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.note")}
    slowest, grown = (max(column) for column in zip(*notes.values(), strict=True))
    if grown > GROWN:
        which = max(notes, key=lambda name: notes[name][1])
        raise Broken(f"reading {which} took {grown} MB more than the process had")
    figures = {"slowest_seconds": round(slowest, 2), "grown_megabytes": grown}
    return {"files": files * len(FORMATS)} | dict(sorted(found.items())) | figures


def again(what: str, seed: int) -> None:
    """One case, from its seed; the file stays to be looked at."""
    folder = Path(tempfile.mkdtemp(prefix="pilae-readers-"))
    Marker.path = str(folder / "marker")
    if what in FORMATS:
        made = case(what, seed)
        path = folder / f"{what}-{seed}{made.ending}"
        path.write_bytes(made.data)
        print(f"{path}: {made.what or 'bytes'}, expected: {made.expected}", flush=True)
        print(read(path, made))
    else:
        models(folder)
        print(try_commands((str(folder), what, seed, seed + 1)))
    shutil.rmtree(folder)


if __name__ == "__main__":
    again(sys.argv[1], int(sys.argv[2]))
