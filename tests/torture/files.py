"""Files nobody here wrote: `pilae.load` of mutated and forged files.

Promised of every file: `pilae.load` gives a model, or one `ModelFileError`; it runs no code of the file's, writes
nothing, and is done within bounds of time and memory. If a file that was damaged (bytes changed by accident) loads, it
predicts exactly what the saved model did. A forged file, whose checksums hold, may hold any model its writer wanted.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import pickle
import resource
import signal
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression

import pilae
from pilae import SHLN, cli
from pilae.save.archive import FORMAT
from torture.harness import Broken, anonymous_megabytes, spread

QUICK = {"files": 800, "processes": 2}
FULL = {"files": 100_000, "processes": 2}

MOST_SECONDS = 60.0
"""Of processor time, for one file: a guard against files that are never done with, not a measure of speed; the slowest
takes 0.3."""

MOST_MEGABYTES, LEFT_MEGABYTES = 700, 50
"""A small archive may unpack to 256 MB, which are held once more while they are looked at; afterwards they are gone."""

SENTENCE = 600
"""Most characters of an error."""

SHARE = 500
"""Files that one process reads before the next is forked."""

FORBIDDEN = ("os.", "subprocess.", "socket.", "shutil.", "ctypes.", "pickle.", "marshal.", "code.", "exec")
"""Audit events that reading a file never raises: the system called, sockets, pickles, code."""

HARMLESS = ("os.listdir", "os.scandir", "os.putenv", "os.unsetenv", "ctypes.call_function")
"""Python 3.14 says of each function of a library that is called: of the BLAS, how many threads it has. Whoever wanted
another library would have to open it first."""

Change = Callable[[np.random.Generator, bytes], bytes]


# ------------------------------------------------------------------------------------------------ what is saved


@cache
def originals() -> list[tuple[bytes, Any, np.ndarray]]:
    """(file, rows, what the model in it says of them), of every kind of model that can be saved."""
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    images = load_digits().images[:60]
    models: list[tuple[Any, np.ndarray, Any]] = [
        (pilae.PILAEClassifier(width=[3], ridge=1e-3, head=SHLN(width=8)), X, names),
        (pilae.PILAEClassifier(depth=0, head="ridge", dtype="float32"), X, y),
        (pilae.PILAERegressor(depth=0, head=SHLN(width=6)), X[:, :3], X[:, 3]),
        (pilae.PILAEClassifier(depth=0, head=LogisticRegression(max_iter=500)), X, y),
        (pilae.StackedPILAE(width=[3, 2]), X, None),
        (pilae.PILClassifier(), X[::5], y[::5]),
        (pilae.ConvPILAE(filters=4, patch=3, pool=2), images, None),
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for model, rows, target in models:
            path = Path(folder) / "model.pilae"
            model.fit(rows, target)
            model.save(path)
            found.append((path.read_bytes(), rows[:20], outputs_of(pilae.load(path), rows[:20])))
        found.append(of_the_command_line(Path(folder)))
    return found


def of_the_command_line(folder: Path) -> tuple[bytes, Any, np.ndarray]:
    """A model of mixed columns and which column is what, as `pilae fit` writes them."""
    iris = load_iris(as_frame=True).frame.rename(columns={"target": "y"})
    numbers = np.arange(len(iris))
    iris["place"] = np.where(numbers % 3, "here", "there")
    iris["when"] = [f"2020-01-{number % 28 + 1:02d}" for number in numbers]
    iris["note"] = [f"flower {number % 50} of {number}" for number in numbers]
    iris.to_csv(folder / "iris.csv", index=False)
    path = folder / "table.pilae"
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = cli.main(["fit", str(folder / "iris.csv"), "--target", "y", "-o", str(path), "--quiet"])
    if status:
        raise Broken(f"pilae fit ended with {status}: {said.getvalue()}")
    rows = iris.drop(columns="y")[:20]
    return path.read_bytes(), rows, outputs_of(pilae.load(path), rows)


def outputs_of(model: Any, rows: Any) -> np.ndarray:
    for method in ("decision_function", "predict_proba", "predict", "transform"):
        if hasattr(model, method):
            return np.asarray(getattr(model, method)(rows))
    raise Broken(f"{model!r} loads and has nothing to predict with")


# ----------------------------------------------------------------------------------------------------- damages


def truncated(rng: np.random.Generator, data: bytes) -> bytes:
    return data[: rng.integers(0, len(data))]


def flipped(rng: np.random.Generator, data: bytes) -> bytes:
    out = bytearray(data)
    for at in rng.integers(0, len(data), rng.integers(1, 9)):
        out[at] ^= 1 << int(rng.integers(8))
    return bytes(out)


def overwritten(rng: np.random.Generator, data: bytes) -> bytes:
    at, n = int(rng.integers(0, len(data))), int(rng.integers(1, 200))
    filling = rng.bytes(n) if rng.random() < 0.5 else bytes(n)
    return data[:at] + filling + data[at + n :]


def inserted(rng: np.random.Generator, data: bytes) -> bytes:
    at = int(rng.integers(0, len(data) + 1))
    return data[:at] + rng.bytes(int(rng.integers(1, 50))) + data[at:]


def deleted(rng: np.random.Generator, data: bytes) -> bytes:
    at = int(rng.integers(0, len(data)))
    return data[:at] + data[at + int(rng.integers(1, 200)) :]


def spliced(rng: np.random.Generator, data: bytes) -> bytes:
    other = originals()[int(rng.integers(len(originals())))][0]
    return data[: rng.integers(0, len(data))] + other[rng.integers(0, len(other)) :]


def torn(rng: np.random.Generator, data: bytes) -> bytes:
    """A page that was never written."""
    at = 512 * int(rng.integers(0, len(data) // 512 + 1))
    return data[:at] + bytes(min(512, len(data) - at)) + data[at + 512 :]


def emptied(rng: np.random.Generator, data: bytes) -> bytes:
    return rng.bytes(int(rng.integers(0, 100)))


DAMAGES: list[Change] = [truncated, flipped, flipped, overwritten, inserted, deleted, spliced, torn, emptied]


# --------------------------------------------------------------------------------------------------- forgeries


def members_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archived(members: dict[str, bytes], header: Any = None, packing: int = zipfile.ZIP_STORED) -> bytes:
    """A file whose checksums hold."""
    if header is not None:
        if isinstance(header, dict) and isinstance(header.get("members"), dict):
            header["members"] = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
        members["header.json"] = json.dumps(header).encode()
        members["header.sha256"] = hashlib.sha256(members["header.json"]).hexdigest().encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def nodes(tree: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything in a JSON tree."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        here = waiting.pop()
        for key in list(here) if isinstance(here, dict) else range(len(here)):
            found.append((here, key))
            if isinstance(here[key], (dict, list)):
                waiting.append(here[key])
    return found


def hostile_value(rng: np.random.Generator) -> Any:
    values = [
        None, True, 0, -1, 2**31, 2**63, 10**40, 1e308, -0.5, "", "x", "../../etc/passwd", "predict", "__class__",
        [], {}, [[]], {"object": 0}, {"object": -1}, {"object": 10**9}, {"object": "0"}, {"array": "0.npy"},
        {"skops": "0.npy"}, {"kind": "PILAEClassifier", "fields": {}}, {"kind": "Popen", "fields": {"args": "id"}},
        {"float": "nan"}, {"float": "x"}, {"tuple": 3}, {"tuple": [{"object": 1}]}, {"space": "torch"}, {"dict": [1]},
        {"items": [1, 2], "shape": [10**9]}, {"items": [], "shape": [-1]}, "\ud800", "\x00", "a" * 10_000,
    ]  # fmt: skip
    return values[int(rng.integers(len(values)))]


def forged_header(rng: np.random.Generator, data: bytes) -> bytes:
    """Some of what the header says, changed."""
    members = members_of(data)
    header = json.loads(members["header.json"])
    for _ in range(int(rng.integers(1, 4))):
        places = nodes(header)
        here, key = places[int(rng.integers(len(places)))]
        kind = rng.integers(4)
        if kind == 0:
            here[key] = hostile_value(rng)
        elif kind == 1:
            del here[key]
        elif kind == 2:
            there, other = places[int(rng.integers(len(places)))]
            here[key] = json.loads(json.dumps(there[other]))
        elif isinstance(here, dict):
            here[str(hostile_value(rng))] = hostile_value(rng)
        else:
            here.append(hostile_value(rng))
    return archived(members, header)


def deep_header(rng: np.random.Generator, data: bytes) -> bytes:
    """Nesting that would exhaust the stack, in the text or in the objects."""
    members = members_of(data)
    header = json.loads(members["header.json"])
    n = int(rng.integers(100, 5_000))
    if rng.random() < 0.5:
        header["objects"] = [{"list": [{"object": k + 1}]} for k in range(n)] + [{"list": []}]
        header["tree"]["model"] = {"object": 0}
        return archived(members, header)
    start = f'{{"file": "pilae", "format": {FORMAT}, "tree": '.encode()
    members["header.json"] = start + b"[" * n + b"]" * n + b"}"
    members["header.sha256"] = hashlib.sha256(members["header.json"]).hexdigest().encode()
    return archived(members)


def early_header(rng: np.random.Generator, data: bytes) -> bytes:
    """A format of yesterday, or of tomorrow, by a writer of any name."""
    members = members_of(data)
    header = json.loads(members["header.json"])
    header["format"] = [*range(1, FORMAT), FORMAT + 1][int(rng.integers(FORMAT))]
    writers = [None, [], [1, 2], 7, "0.1.0", {}, {"pilae": None}, {"pilae": "v" * 2**22}, {"pilae": [{"a": "\n"}]}]
    header["versions"] = writers[int(rng.integers(len(writers)))]
    return archived(members, header)


def many_paths(rng: np.random.Generator, data: bytes) -> bytes:
    """Few bytes, many steps: objects in objects in objects as keys, or one object named again and again."""
    members = members_of(data)
    header = json.loads(members["header.json"])
    first, n = len(header["objects"]), int(rng.integers(10, 60))
    if rng.random() < 0.5:
        sides = ("height", "width", "channels")
        inner = [{"kind": "Shape", "fields": {key: {"object": first + k + 1} for key in sides}} for k in range(n)]
        header["objects"] += [*inner, {"kind": "Shape", "fields": dict.fromkeys(sides, 1)}]
        header["objects"].append({"dict": [[{"object": first}, 1]]})
        header["tree"]["model"] = {"object": first + n + 1}
    else:
        for item in header["objects"]:
            if isinstance(item, dict) and "list" in item:
                item["list"] = item["list"] * 20_000
    return archived(members, header)


def npy(array: np.ndarray, *, pickled: bool = False) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, allow_pickle=pickled)
    return out.getvalue()


def claiming(shape: tuple[int, ...], descr: str = "<f8", data: bytes = b"") -> bytes:
    """A member that says it is an array of this shape."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": descr, "fortran_order": False, "shape": shape})
    return out.getvalue() + data


class Evil:
    """Unpickling it would write a file."""

    def __reduce__(self) -> Any:
        return (open, (str(MARKER), "w"))


WITH_ESTIMATOR = 3
"""The original that holds a scikit-learn estimator."""

MARKER = Path(tempfile.gettempdir()) / "pilae-torture-code-was-run"


def hostile_array(rng: np.random.Generator, data: bytes) -> bytes:
    """Another array in the place of a saved one."""
    old = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    kind = int(rng.integers(13))
    if kind == 0:
        return claiming((10 ** int(rng.integers(5, 18)),))
    if kind == 1:
        return claiming((2**32, 2**32))
    if kind == 2:
        return claiming((-1,), data=bytes(8))
    if kind == 3:
        return npy(np.array([Evil()], dtype=object), pickled=True)
    if kind == 4:
        return pickle.dumps(Evil())
    if kind == 5:
        return npy(old.astype("U8"))
    if kind == 6:
        return claiming(old.shape, "|O", bytes(8 * old.size))
    if kind == 7:
        return npy(np.full(old.shape, np.nan))
    if kind == 8:
        return npy(old[..., None] if rng.random() < 0.5 else old.reshape(-1))
    if kind == 9:
        return npy(old[: len(old) // 2] if old.ndim else old)
    if kind == 10:
        return npy(old.astype(">f8") if old.dtype.kind in "fiu" else old)
    if kind == 11:
        return npy(np.zeros((300_000, 1)))  # beside a row it would become a matrix
    return npy(np.zeros(old.shape, np.complex128))


def forged_array(rng: np.random.Generator, data: bytes) -> bytes:
    members = members_of(data)
    arrays = [name for name in members if name.endswith(".npy")]
    if not arrays:
        return forged_header(rng, data)
    name = arrays[int(rng.integers(len(arrays)))]
    members[name] = hostile_array(rng, members[name])
    return archived(members, json.loads(members["header.json"]))


def forged_estimator(rng: np.random.Generator, data: bytes) -> bytes:
    """What skops is to read: other types, hostile arrays, bombs and pickles."""
    members = members_of(data)
    name = max((name for name in members if name.endswith(".skops")), key=lambda name: len(members[name]))
    inside = members_of(members[name])
    schema = json.loads(inside["schema.json"])
    kind = int(rng.integers(6))
    if kind <= 1:
        places = nodes(schema)
        here, key = places[int(rng.integers(len(places)))]
        here[key] = hostile_value(rng)
    elif kind == 2:
        types = [here for here, key in nodes(schema) if key == "__class__"]
        here = types[int(rng.integers(len(types)))]
        modules = [
            ("os", "system"),
            ("builtins", "eval"),
            ("subprocess", "Popen"),
            ("pickle", "loads"),
            ("pty", "spawn"),
        ]
        here["__module__"], here["__class__"] = modules[int(rng.integers(len(modules)))]
        if rng.random() < 0.5:
            here["__loader__"] = ["FunctionNode", "TypeNode", "MethodNode", "OperatorFuncNode"][int(rng.integers(4))]
    elif kind == 3:
        arrays = [member for member in inside if member.endswith(".npy")]
        inside[arrays[int(rng.integers(len(arrays)))]] = hostile_array(rng, inside[arrays[0]])
    elif kind == 4:
        inside["bomb.npy"] = bytes(2**20)
        inside["schema.json"] = flipped(rng, inside["schema.json"])
    else:
        inside = {member: flipped(rng, content) for member, content in inside.items()}
    if kind < 4:
        inside["schema.json"] = json.dumps(schema).encode()
    members[name] = archived(inside, packing=zipfile.ZIP_DEFLATED if rng.random() < 0.5 else zipfile.ZIP_STORED)
    return archived(members, json.loads(members["header.json"]))


@cache
def bomb() -> bytes:
    """300 MB in 300 KB, as an array that the header names."""
    members = members_of(originals()[0][0])
    members["0.npy"] = claiming((37_500_000,), data=bytes(300_000_000))
    return archived(members, json.loads(members["header.json"]), zipfile.ZIP_DEFLATED)


@cache
def long_header() -> bytes:
    """A header of 32 MB in 32 KB."""
    members = members_of(originals()[0][0])
    members["header.json"] = b" " * 2**25 + members["header.json"]
    members["header.sha256"] = hashlib.sha256(members["header.json"]).hexdigest().encode()
    return archived(members, packing=zipfile.ZIP_DEFLATED)


def forged_archive(rng: np.random.Generator, data: bytes) -> bytes:
    """Bombs, other ways of packing, member names that lead elsewhere, members twice."""
    members = members_of(data)
    header = json.loads(members["header.json"])
    kind = int(rng.integers(7))
    if kind == 0:
        return bomb()
    if kind == 1:
        return archived(members, header, zipfile.ZIP_BZIP2 if rng.random() < 0.5 else zipfile.ZIP_LZMA)
    if kind == 2:
        members["../../../tmp/pilae-torture-path"] = b"x"
        members["/etc/pilae-torture-path"] = b"x"
        return archived(members, header)
    if kind == 3:  # one member for every array
        for item in header["objects"]:
            if isinstance(item, dict) and "array" in item:
                item["array"] = "0.npy"
        return archived(members, header)
    if kind == 4:
        return long_header()
    out = bytearray(archived(members, header, zipfile.ZIP_DEFLATED))
    at = out.find(b"PK\x01\x02")  # the directory: sizes and flags that lie
    field, width = [(24, 4), (20, 4), (8, 2), (42, 4), (10, 2)][int(rng.integers(5))]
    if kind == 5:
        for _ in range(int(rng.integers(0, 4))):
            at = max(out.find(b"PK\x01\x02", at + 4), at)
    out[at + field : at + field + width] = rng.bytes(width)
    return bytes(out)


FORGERIES: list[Change] = [
    forged_header,
    forged_header,
    deep_header,
    early_header,
    many_paths,
    forged_array,
    forged_estimator,
    forged_archive,
]


# ----------------------------------------------------------------------------------------------------- reading


class Watch:
    """Hears what the interpreter is asked to do while `on`: nothing of `FORBIDDEN`, and no file opened to write."""

    def __init__(self) -> None:
        self.on, self.heard = False, ""
        sys.addaudithook(self)

    def __call__(self, event: str, details: tuple) -> None:
        if self.on and not self.heard:
            writes = event == "open" and any(letter in str(details[1] or "") for letter in "wax+")
            if writes or (event.startswith(FORBIDDEN) and event not in HARMLESS):
                self.heard = f"{event} {details!r:.200}"

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        self.on, self.heard = True, ""
        try:
            yield
        finally:
            self.on = False


class TooSlow(BaseException):
    """Not an Exception: `load` must not take it for damage."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Ends what takes more processor time than that."""

    def stop(*_: Any) -> None:
        raise TooSlow(f"loading took more than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def examine(path: Path, rows: Any, expected: np.ndarray | None, watch: Watch) -> str:
    """Load one file and say how it ended; `expected` is what its model must predict, None for a forged one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with watch.listening():
            try:
                with at_most(MOST_SECONDS):
                    model = pilae.load(path)
            except pilae.ModelFileError as error:
                if "\n" in str(error) or len(str(error)) > SENTENCE:
                    raise Broken(f"{path}: more than a sentence: {error!s:.{SENTENCE}}") from error
                model = None
        if watch.heard:
            raise Broken(f"{path}: loading did {watch.heard}")
        if model is None:
            return "refused"
        if expected is not None:
            if not np.array_equal(outputs_of(model, rows), expected):
                raise Broken(f"{path}: a damaged file loads and predicts something else")
            return "unharmed"
        try:
            outputs_of(model, rows)
        except (ValueError, TypeError, AttributeError, IndexError, KeyError):
            return "forged, predicts nothing"
        return "forged, predicts"


def share(item: tuple[int, int]) -> Counter:
    """Read some files of one seed."""
    seed, n = item
    rng = np.random.default_rng([seed, 9])
    watch = Watch()
    counts: Counter = Counter()
    before, most_before = anonymous_megabytes(), most_megabytes()  # of a forked process: what it holds now
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pilae"
        for k in range(n):
            damaged = rng.random() < 0.6
            changes = DAMAGES if damaged else FORGERIES
            change = changes[int(rng.integers(len(changes)))]
            which = WITH_ESTIMATOR if change is forged_estimator else int(rng.integers(len(originals())))
            data, rows, expected = originals()[which]
            path.write_bytes(change(rng, data))
            try:
                counts[examine(path, rows, expected if damaged and change is not spliced else None, watch)] += 1
            except BaseException as error:
                kept = Path(tempfile.gettempdir()) / f"pilae-torture-{seed}-{k}.pilae"
                kept.write_bytes(path.read_bytes())
                raise Broken(f"seed {seed}, file {k} ({change.__name__}), kept as {kept}: {error!r}") from error
            counts[f"by {change.__name__}"] += 1
    grown = anonymous_megabytes() - before
    peak = most_megabytes() - most_before
    if grown > LEFT_MEGABYTES or peak > MOST_MEGABYTES:
        raise Broken(f"seed {seed}: memory grew by {grown:.0f} MB, with a peak {peak:.0f} MB above the beginning")
    return counts


def most_megabytes() -> float:
    """The most that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(files: int, processes: int) -> dict[str, Any]:
    MARKER.unlink(missing_ok=True)
    originals(), bomb(), long_header()  # made once, before any process is forked
    items = [(seed, min(SHARE, files - seed * SHARE)) for seed in range(-(-files // SHARE))]
    counts = spread(share, items, processes)
    if MARKER.exists():
        raise Broken(f"code of a file was run: {MARKER} exists")
    ways = {name.removeprefix("by "): n for name, n in sorted(counts.items()) if name.startswith("by ")}
    ends = {name: n for name, n in sorted(counts.items()) if not name.startswith("by ")}
    return {"files": sum(ends.values()), "endings": ends, "ways": ways}
