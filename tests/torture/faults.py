"""The worst moments: a process killed while it saves, a full disk, Ctrl-C anywhere, no memory.

Promised: a file is the old one or the new one, and nothing of an unfinished one is left; an estimator whose `fit`,
`partial_fit`, `forget`, `merge` or `recalibrate` was interrupted, at any moment and for any reason, is what it was
before or what it is afterwards, and can be used.
"""

from __future__ import annotations

import contextlib
import copy
import errno
import hashlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
from threadpoolctl import threadpool_limits

import pilae
from pilae._estimators import fitted as replacing
from torture.harness import Broken

QUICK = {"kills": 15, "interrupts": 10, "limits": 3}
FULL = {"kills": 300, "interrupts": 500, "limits": 24}

ROWS = 240
LAST_STEPS = 60
"""Of what is done, where one file or model takes another's place."""


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(ROWS) % 3
    return rng.standard_normal((ROWS, 5)) + 2 * np.eye(3, 5)[y], y


def in_child(act: Callable[[], int]) -> int:
    """The status of a forked process that does this and nothing else."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            status = act()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def least_seconds(act: Callable[[Any], object], model: Any) -> float:
    """Of three times, each with a copy of the model: the first is not warm."""
    seconds = float("inf")
    for _ in range(3):
        copied = copy.deepcopy(model)
        start = time.perf_counter()
        act(copied)
        seconds = min(seconds, time.perf_counter() - start)
    return seconds


# -------------------------------------------------------------------------------------------------------- kill -9


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def saved(model: Any, path: Path, steps: Steps | None = None) -> int:
    with steps.counted() if steps else contextlib.nullcontext():
        model.save(path)
    return 0


def killed_after(seconds: float, act: Callable[[], int]) -> int:
    """The status of a forked process that is killed so long after it has said that it begins."""
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.write(go, b"!")
            status = act()
        finally:
            os._exit(status)
    os.read(ready, 1)
    os.close(ready), os.close(go)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def killed_while_saving(kills: int, rng: np.random.Generator) -> dict[str, int]:
    """A forked process saves one model over another and is killed.

    Every other one kills itself at a step of saving, any or one of the last, which is in the middle however busy the
    machine is; the others are killed at some moment by the clock, inside a step, too, or when the file is saved.
    """
    X, y = data()
    old, new = (
        pilae.PILAEClassifier(depth=0, random_state=seed, head=pilae.SHLN(width=230)).fit(X, y) for seed in (0, 1)
    )
    said = {name: model.decision_function(X) for name, model in (("old", old), ("new", new))}
    counts: Counter = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pilae"
        seconds = least_seconds(lambda model: model.save(path), new)
        with Steps().counted() as steps:
            new.save(path)
        old.save(path)
        whole = path.read_bytes()
        for k in range(kills):
            if k % 2 == 0:
                last = steps.count if k % 4 == 0 else LAST_STEPS
                at = steps.count - int(rng.integers(last))
                status = in_child(lambda at=at: saved(new, path, Steps(at, die)))
                if not os.WIFSIGNALED(status):
                    raise Broken(f"kill {k}: the process was not killed at step {at} of {steps.count}")
            else:
                status = killed_after(rng.uniform(0, 1.5 * seconds), lambda: saved(new, path))
            counts["killed in time"] += os.WIFSIGNALED(status)
            outputs = pilae.load(path).decision_function(X)  # a broken file raises
            found = [name for name, expected in said.items() if np.array_equal(outputs, expected)]
            if not found:
                raise Broken(f"kill {k}: the file is neither the old one nor the new one")
            counts[f"{found[0]} file"] += 1
            for other in Path(folder).iterdir():
                if other != path:  # between its name and its place: whole, and only for that moment
                    pilae.load(other)
                    other.unlink()
                    counts["whole file left under another name"] += 1
            path.write_bytes(whole)
    return dict(sorted(counts.items()))


# ------------------------------------------------------------------------------------------- full and forbidden


FULL_DISK = """
import sys, numpy as np, pilae
rng = np.random.default_rng(0)
X, y = rng.standard_normal((200, 5)), np.arange(200) % 2
small = pilae.PILAEClassifier(depth=0, head="ridge").fit(X, y)
large = pilae.PILAEClassifier(depth=0, head=pilae.SHLN(width=150)).fit(X, y)
path = sys.argv[1] + "/model.pilae"
small.save(path)
before = open(path, "rb").read()
try:
    large.save(path)
except OSError as error:
    print(error.errno, error)
import os
print(sorted(os.listdir(sys.argv[1])) == ["model.pilae"] and open(path, "rb").read() == before)
"""


def full_disk() -> str:
    """A file system of 64 KB, mounted for this alone; where that is not allowed, a limit on the size of files."""
    with tempfile.TemporaryDirectory() as folder:
        mounted = 'mount -t tmpfs -o size=64k tmpfs "$1" && shift && exec "$@"'
        call = [sys.executable, "-c", FULL_DISK, folder]
        way = "a file system of 64 KB"
        out = subprocess.run(
            ["unshare", "-rm", "sh", "-c", mounted, "-", folder, *call], capture_output=True, text=True
        )
        if out.returncode:
            way = "a limit of 64 KB on files"
            out = subprocess.run(["sh", "-c", 'ulimit -f 64; exec "$@"', "-", *call], capture_output=True, text=True)
    lines = out.stdout.splitlines()
    number = errno.ENOSPC if way.startswith("a file system") else errno.EFBIG
    if out.returncode or len(lines) != 2 or not lines[0].startswith(f"{number} Cannot write"):
        raise Broken(f"full disk ({way}): {out.stdout} {out.stderr}")
    if lines[1] != "True":
        raise Broken(f"full disk ({way}): the old file was touched, or something is left beside it")
    return way


def read_only_folder() -> None:
    """Nobody may write there (as root, another user tries)."""
    X, y = data()
    model = pilae.PILAEClassifier(depth=0, head="ridge").fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pilae"
        model.save(path)
        before = path.read_bytes()
        os.chmod(folder, 0o555)

        def try_to_save() -> int:
            if os.geteuid() == 0:
                os.seteuid(65534)
            try:
                model.save(path)
            except PermissionError as error:
                return 0 if str(error).startswith("Cannot write") else 3
            return 4

        status = in_child(try_to_save)
        os.chmod(folder, 0o755)
        if status or path.read_bytes() != before or len(list(Path(folder).iterdir())) != 1:
            raise Broken(f"read-only folder: status {status}, or the file was changed")


# ---------------------------------------------------------------------------------------------------------- Ctrl-C


def fingerprint(model: Any, X: np.ndarray) -> str:
    """What can be told of an estimator from outside, and the sums inside."""
    digest = hashlib.sha256(repr(sorted(vars(model))).encode())
    if not hasattr(model, "n_features_in_"):
        return digest.hexdigest()
    for method in ("transform", "decision_function", "predict", "predict_proba"):
        if hasattr(model, method):
            digest.update(np.ascontiguousarray(getattr(model, method)(X)).tobytes())
    if hasattr(model, "head_"):
        moments = model.head_.output.moments
        for sums in (moments.aa, moments.ab, moments.bb, moments.sum_a, np.float64([moments.count, moments.weight])):
            digest.update(np.ascontiguousarray(sums).tobytes())
        digest.update(repr((model.loo_is_stale_, getattr(model, "loo_score_", None))).encode())
        digest.update(repr((model.fitted_.fading, getattr(model, "stream_score_", None))).encode())
        if model.fitted_.window is not None:
            for chunk in model.fitted_.window.chunks:
                digest.update(chunk.X.tobytes() + chunk.y.tobytes() + chunk.w.tobytes())
    return digest.hexdigest()


def operations() -> dict[str, tuple[Any, Callable[[Any], Any], np.ndarray]]:
    """name -> (estimator, what is done to it, rows to ask it about)."""
    X, y = data()
    few, labels = X[:60], y[:60]
    images = np.abs(X[:40].reshape(40, 5, 1)) * np.ones((1, 1, 5))
    fixed = {"width": [4], "ridge": 1e-3, "head": pilae.SHLN(width=12)}
    fitted = pilae.PILAEClassifier(**fixed).fit(X, y)
    regressor = pilae.PILAERegressor(**fixed).fit(X[:, :4], X[:, 4])
    other = fitted.fork().partial_fit(few, labels)
    faded, sliding = copy.deepcopy(fitted).partial_fit(few, labels, decay=0.9), fitted.fork()
    sliding.partial_fit(X[:100], y[:100], window=100)
    return {
        "fit": (pilae.PILAEClassifier(**fixed), lambda model: model.fit(X, y), X),
        "fit again": (fitted, lambda model: model.fit(few[:, :3], labels), few),
        "automatic fit": (pilae.PILAEClassifier(max_depth=1), lambda model: model.fit(few, labels), X),
        "first partial_fit": (pilae.PILAEClassifier(**fixed), lambda model: model.partial_fit(X, y), X),
        "partial_fit": (fitted, lambda model: model.partial_fit(few, labels), X),
        "partial_fit, new class": (fitted, lambda model: model.partial_fit(few, labels + 2), X),
        "partial_fit, update=all": (fitted, lambda model: model.partial_fit(few, labels, update="all"), X),
        "partial_fit of a regressor": (regressor, lambda model: model.partial_fit(few[:, :4], few[:, 4]), X[:, :4]),
        "partial_fit, decay": (faded, lambda model: model.partial_fit(few, labels, decay=0.9), X),
        "partial_fit, a row": (faded, lambda model: model.partial_fit(few[:1], labels[:1], half_life=30), X),
        "partial_fit, tested and current": (
            fitted,
            lambda model: model.partial_fit(few[:3], labels[:3], test_first=True, current=True),
            X,
        ),
        "partial_fit, window": (sliding, lambda model: model.partial_fit(few, labels), X),
        "forget in a window": (sliding, lambda model: model.forget(few, labels), X),
        "forget by age": (faded, lambda model: model.forget(few[:9], labels[:9], age=0), X),
        "forget": (fitted, lambda model: model.forget(few, labels), X),
        "forget, remaining": (fitted, lambda model: model.forget(few, labels, remaining=(X[60:], y[60:])), X),
        "merge": (fitted, lambda model: model.merge(other), X),
        "recalibrate": (fitted, lambda model: model.recalibrate(X, y), X),
        "StackedPILAE.fit": (pilae.StackedPILAE(width=[4, 3]), lambda model: model.fit(X), X),
        "PILClassifier.fit": (pilae.PILClassifier(), lambda model: model.fit(few, labels), X),
        "ConvPILAE.fit": (pilae.ConvPILAE(filters=4, patch=3, pool=2), lambda model: model.fit(images), images),
    }


def ctrl_c() -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def interruption(seconds: float) -> Iterator[None]:
    """Ctrl-C after that time, if it is not over by then."""

    before = signal.signal(signal.SIGALRM, lambda *_: ctrl_c())
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Steps:
    """Counts the lines that are run, and in `pilae._estimators.fitted`, where one model takes another's place, every
    instruction; Ctrl-C is pressed at one of them. The clock seldom meets the short moments that matter most."""

    def __init__(self, press_at: int = -1, press: Callable[[], None] = ctrl_c) -> None:
        self.press_at, self.press, self.count, self.instructions = press_at, press, 0, 0

    def __call__(self, frame: Any, event: str, _: Any) -> Any:
        if event == "call":
            frame.f_trace_opcodes = frame.f_code.co_filename == replacing.__file__
        elif event in ("line", "opcode"):
            self.count += 1
            self.instructions += event == "opcode"
            if self.count == self.press_at:
                self.press()
        return self

    @contextlib.contextmanager
    def counted(self) -> Iterator[Self]:
        before = sys.gettrace()
        sys.settrace(self)
        try:
            yield self
        finally:
            sys.settrace(before)


def interrupted(interrupts: int, rng: np.random.Generator) -> dict[str, dict[str, int]]:
    found = {}
    for name, (start, act, rows) in operations().items():
        known = {fingerprint(start, rows if hasattr(start, "n_features_in_") and name != "fit again" else data()[0])}
        seconds = least_seconds(act, start)
        for _ in range(2):  # from Python 3.12 on instructions of a function are seen from its second call on
            model, steps = copy.deepcopy(start), Steps()
            with steps.counted():
                act(model)
        if not steps.instructions:
            raise Broken(f"{name}: no instruction was counted where a new model takes the old one's place")
        rows_after = rows[:, :3] if name == "fit again" else rows
        after = fingerprint(model, rows_after)
        counts: Counter = Counter()
        for k in range(interrupts):
            model = copy.deepcopy(start)
            # by the clock, at any step, and at the last ones
            last = steps.count if k % 3 == 1 else LAST_STEPS
            at = steps.count - int(rng.integers(last))
            moment = interruption(rng.uniform(0, 1.2 * seconds)) if k % 3 == 0 else Steps(at).counted()
            try:
                with moment:
                    act(model)
            except KeyboardInterrupt:
                counts["interrupted"] += 1
            except Exception:  # NumPy's C code makes another error of one that meets it in the middle
                counts["interrupted, as another error"] += 1
            columns = getattr(model, "n_features_in_", None)
            here = fingerprint(model, data()[0] if columns is None or columns == 5 else rows_after)
            if here == after:
                counts["as after"] += 1
            elif here in known:
                counts["as before"] += 1
            else:
                raise Broken(f"{name}, interruption {k}: the estimator is neither what it was nor what it should be")
            if here != after and k % 10 == 0 and fingerprint(act(model), rows_after) != after:
                raise Broken(f"{name}, interruption {k}: doing it again gives something else")
        found[name] = dict(sorted(counts.items()))
    return found


# ---------------------------------------------------------------------------------------------------------- memory


def out_of_memory(limits: int) -> dict[str, int]:
    """`fit` under limits on memory from next to nothing to enough, each in a forked process."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12_000, 200)), np.arange(12_000) % 3
    pilae.PILAEClassifier(width=[20], head=pilae.SHLN(width=50)).fit(X[:500], y[:500])  # warm
    counts: Counter = Counter()
    for megabytes in np.geomspace(1, 500, limits):
        status = in_child(lambda megabytes=megabytes: _fit_within(float(megabytes), X, y))
        if os.WIFSIGNALED(status) or os.WEXITSTATUS(status) > 1:
            raise Broken(f"fit within {megabytes:.0f} MB: exit status {status}")
        counts["MemoryError, as before" if os.WEXITSTATUS(status) else "fitted"] += 1
    return dict(sorted(counts.items()))


def _fit_within(megabytes: float, X: np.ndarray, y: np.ndarray) -> int:
    model = pilae.PILAEClassifier(width=[100], head=pilae.SHLN(width=600))
    before = dict(vars(model))
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + int(megabytes * 2**20), hard))
    try:
        model.fit(X, y)
    except MemoryError:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        if vars(model) != before:
            return 2
        model.fit(X[:1000], y[:1000])
        return 1
    return 0


def run(kills: int, interrupts: int, limits: int) -> dict[str, Any]:
    rng = np.random.default_rng(9)
    with threadpool_limits(1):  # equal sums bit by bit, and no threads that a fork would lose
        read_only_folder()
        return {
            "kills": kills,
            "saving": killed_while_saving(kills, rng),
            "full_disk": full_disk(),
            "read_only_folder": "one sentence, file unchanged",
            "interrupts": interrupts * len(operations()),
            "interrupted": interrupted(interrupts, rng),
            "memory_limits": out_of_memory(limits),
        }
