"""One model, many threads and processes: every answer is the serial one, bit for bit, also while rows come and go.

A model whose output layer is still to be solved (after `partial_fit`) may be asked by many at once. Whoever predicts
while another thread changes the model sees it as it was or as it is, nothing between. `fit` in joblib's workers leaves
no more BLAS threads than there are cores, and the number of BLAS threads changes a model by rounding only (`bound`, as
stated in docs/maths.md). Free-threaded Python: not tested, no build of it was to be had.
"""

from __future__ import annotations

import copy
import inspect
import multiprocessing
import os
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from joblib.externals.loky import get_reusable_executor
from threadpoolctl import threadpool_info, threadpool_limits

import pilae
from pilae import SHLN, PILAEClassifier, PILAERegressor
from pilae._arrays import threads as pilae_threads
from pilae._engine.moments import Moments
from pilae._network.output import standardised
from torture.harness import Broken

QUICK = {"rounds": 4, "updates": 12, "times": 1, "forked": 8, "spawned": 0, "workers": 0}
FULL = {
    "rounds": 60,
    "updates": 200,
    "times": 10,
    "forked": 8,
    "spawned": 8,
    "workers": 2,
}  # processes that import take seconds

PACKAGE = f"{Path(pilae.__file__).parent}{os.sep}"
"""Every line below it is traced, in whatever file it is."""

SWAP = PILAEClassifier._updated
"""The code that puts a changed model in the place of the old one."""

READING = (PILAEClassifier, standardised, Moments)
WRITING = (SWAP, inspect.unwrap(PILAEClassifier.partial_fit), *READING)
"""What predictions and updates run: where no line of a file that defines one of these was traced, nothing was tried."""

ASKING = 8
"""Threads that ask at once."""

HIDDEN = {
    "random_state": 0,
    "head": SHLN(width=60, encoder_ridge=0.1, anchors="rows", activation="relu", direct_links=False),
}


def run(rounds: int, updates: int, times: int, forked: int, spawned: int, workers: int) -> dict:
    """Answers compared, by how they were asked for, and the worst difference over its bound by number of threads."""
    found: dict[str, Any] = {"asked_at_once": 0}
    with _switching_often():
        for name, (model, X) in _models().items():
            found["asked_at_once"] += _ask_at_once(name, model, X, rounds)
        found["asked_while_updated"] = _ask_while_updated(updates)
    found["asked_at_a_line_of_an_update"] = _ask_at_every_line(times)
    found["updated_at_a_line_of_an_answer"] = _update_at_every_line()
    found["asked_in_processes"] = _ask_in_processes("fork", forked)
    if spawned:
        found["asked_in_processes"] += _ask_in_processes("spawn", spawned)
    if workers:
        found["blas_threads_in_joblib"] = _blas_threads_in_joblib(workers)
    found["worst_difference_over_bound"] = _numbers_of_threads()
    return found


@contextmanager
def _switching_often() -> Iterator[None]:
    """Threads take turns every few microseconds, so that what can be interrupted is."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _data(n: int = 300, d: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows, three classes, real targets)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    target = X[:, 0] + np.abs(X[:, 1]) + 0.1 * rng.standard_normal(n)
    return X, np.digitize(target, [0.0, 1.0]), target


def _models() -> dict[str, tuple[Any, np.ndarray]]:
    """Fitted, and with an output layer still to be solved; rows to ask about."""
    X, y, target = _data()
    return {
        "fitted classifier": (PILAEClassifier(depth=0, **HIDDEN).fit(X, y), X),
        "stale classifier": (PILAEClassifier(depth=0, **HIDDEN).fit(X, y).partial_fit(X[:50], y[:50]), X),
        "deep classifier": (PILAEClassifier(width=[5], **HIDDEN).fit(X, y).forget(X[:9], y[:9]), X),
        "stale regressor": (PILAERegressor(depth=0, **HIDDEN).fit(X, target).partial_fit(X[:50], target[:50]), X),
        "new class": (PILAEClassifier(depth=0, **HIDDEN).fit(X, y).partial_fit(X[:9], np.full(9, 7)), X),
    }


def _answers(model: Any, X: np.ndarray) -> list[np.ndarray]:
    """Everything that can be asked of a model."""
    if isinstance(model, PILAEClassifier):
        return [model.predict_proba(X), model.predict(X), model.decision_function(X)]
    return [model.predict(X), model.predict_interval(X)]


def _same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def _together(works: list[Callable[[], Any]]) -> list[Any]:
    """Results of the works, each in a thread of its own, started as nearly at once as can be."""
    gate = threading.Barrier(len(works))

    def begin(work: Callable[[], Any]) -> Any:
        gate.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(begin, works))


def _ask_at_once(name: str, model: Any, X: np.ndarray, rounds: int) -> int:
    serial = _answers(copy.deepcopy(model), X)
    for k in range(rounds):
        asked = copy.deepcopy(model)  # as it was before anybody asked
        for answers in _together([partial(_answers, asked, X)] * ASKING):
            if not _same(answers, serial):
                raise Broken(f"{name}: asked by {ASKING} threads at once (round {k}), one had another answer")
    return rounds * ASKING


# ------------------------------------------------------------------------------------------------- while it changes


def _ask_while_updated(updates: int) -> int:
    """Readers beside one writer: every answer is that of the model after some whole number of updates, and later ones
    are not of earlier models."""
    X, y, _ = _data(700)  # rows enough for probabilities by a logistic map, which knows the classes of before
    start = PILAEClassifier(depth=0, **HIDDEN).fit(X, y)
    states = [_answers(copy.deepcopy(start), X)]
    serial = copy.deepcopy(start)
    for k in range(updates):
        _update(serial, X, y, k)
        states.append(_answers(copy.deepcopy(serial), X))
    model, done = copy.deepcopy(start), threading.Event()

    def write() -> int:
        try:
            for k in range(updates):
                _update(model, X, y, k)
        finally:
            done.set()
        return 0

    def read() -> int:
        at, count, ask = 0, 0, (model.predict_proba, model.predict, model.decision_function)
        while True:
            last = done.is_set()
            for which, method in enumerate(ask):
                answer = method(X)
                there = [k for k in range(at, len(states)) if np.array_equal(states[k][which], answer)]
                if not there:
                    old = any(np.array_equal(state[which], answer) for state in states)
                    raise Broken(
                        f"{method.__name__} beside partial_fit and forget: an answer of "
                        + (f"a model from before the one asked {at}" if old else "no model there ever was")
                        + f", of shape {answer.shape}"
                    )
                at, count = there[0], count + 1
            if last:
                return count

    return sum(_together([write, *[read] * (ASKING - 1)]))


def _update(model: PILAEClassifier, X: np.ndarray, y: np.ndarray, k: int) -> None:
    """Seven rows come, then five of them go; the fourth time they are of a class that nobody announced, and that
    comes before all others in their order."""
    first = 7 * (k // 2 % 20)
    labels = np.full(len(y), -1) if k // 2 == 3 else y
    if k % 2 == 0:
        model.partial_fit(X[first : first + 7], labels[first : first + 7])
    else:
        model.forget(X[first : first + 5], labels[first : first + 5])


def _ask_at_every_line(times: int) -> int:
    """At every line that an update runs somebody asks: the answer is that of before or of after."""
    X, y, _ = _data(700)
    few = X[:20]
    start = PILAEClassifier(depth=0, **HIDDEN).fit(X, y)
    fork = start.fork().partial_fit(X[:9], y[:9])
    late = slice(0, 7), np.full(7, -1)  # a class that comes before all others in their order
    updates: dict[str, Callable[[PILAEClassifier], Any]] = {
        "partial_fit": lambda model: model.partial_fit(X[:7], y[:7]),
        "forget": lambda model: model.forget(X[:7], y[:7]),
        "partial_fit, a new class": lambda model: model.partial_fit(X[late[0]], late[1]),
        "partial_fit, update='all'": lambda model: model.partial_fit(X[:7], y[:7], update="all"),
        "partial_fit, decay": lambda model: model.partial_fit(X[:40], y[:40], decay=0.9),
        "partial_fit, a row that fades": lambda model: model.partial_fit(X[:1], y[:1], half_life=50.0),
        "partial_fit, tested and current": lambda model: model.partial_fit(X[:2], y[:2], test_first=True, current=True),
        "partial_fit, window": lambda model: model.partial_fit(X[:40], y[:40]),
        "forget in a window": lambda model: model.forget(X[:40], y[:40]),
        "merge": lambda model: model.merge(fork),
        "recalibrate": lambda model: model.recalibrate(X[:500], y[:500]),
        "fit": lambda model: model.fit(X[:300], y[:300]),
    }
    sliding = start.fork().partial_fit(X, y, window=700)
    begun = {"partial_fit, window": sliding, "forget in a window": sliding}
    lines = list[str]()
    for name, update in updates.items():
        before = begun.get(name, start)
        model, after = copy.deepcopy(before), copy.deepcopy(before)
        update(after)
        states = [_answers(copy.deepcopy(before), few), _answers(after, few)]
        places = _while_running(partial(update, model), partial(_answers, model, few), times)
        covers([line for line, _ in places], (SWAP,))
        lines += [line for line, _ in places]
        for line, answers in places:
            for which, answer in enumerate(answers):
                if not any(np.array_equal(state[which], answer) for state in states):
                    raise Broken(f"{name}, asked before {line}: an answer of neither the model before nor that after")
    covers(lines, WRITING)
    return len(lines)


def _update_at_every_line() -> int:
    """At every line that a prediction runs somebody brings a new class: the answer is that of before or of after."""
    X, y, _ = _data(700)
    start = PILAEClassifier(depth=0, **HIDDEN).fit(X, y)
    late = X[:7], np.full(7, -1)  # comes before all others in their order
    start.predict_proba(X[:1])  # its probabilities are found once, not for every line
    start.partial_fit(X[:7], y[:7])
    after = copy.deepcopy(start).partial_fit(*late)
    count, X = 0, X[:50]
    for name in ("predict_proba", "predict", "decision_function"):
        states = [getattr(copy.deepcopy(model), name)(X) for model in (start, after)]
        at, done = 0, list[str]()
        while len(done) == at:  # until there is no such line any more
            model, at = copy.deepcopy(start), at + 1
            answer = _at_one_line(partial(getattr(model, name), X), at, partial(model.partial_fit, *late), done)
            if not any(np.array_equal(state, answer) for state in states):
                raise Broken(f"{name}, a new class before {done[-1]}: an answer of neither the old model nor the new")
        covers(done, READING)
        count += at - 1
    return count


def covers(places: list[str], wanted: tuple[Any, ...]) -> None:
    """Broken if no line was run in one of the files that define what is wanted."""
    files = {place.rpartition(":")[0] for place in places}
    missed = [thing.__qualname__ for thing in wanted if inspect.getfile(thing).removeprefix(PACKAGE) not in files]
    if missed:
        raise Broken(f"no line of the files of {', '.join(missed)} was traced, only of {sorted(files)}")


def _place(frame: Any) -> str | None:
    """file:line of a frame of pilae, None of any other."""
    name = frame.f_code.co_filename
    return f"{name.removeprefix(PACKAGE)}:{frame.f_lineno}" if name.startswith(PACKAGE) else None


def _at_one_line(work: Callable[[], Any], at: int, other: Callable[[], None], done: list[str]) -> Any:
    """work(), with other() called before the line of pilae numbered `at`, whose place is put into `done`."""
    passed = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal passed
        place = _place(frame)
        if place is None:
            return None
        passed += event == "line"
        if event == "line" and passed == at:
            sys.settrace(None)
            other()
            done.append(place)
            return None
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return work()
    except Exception as error:
        raise Broken(f"a new class before {done[-1:]}: {type(error).__name__}: {error}") from error
    finally:
        sys.settrace(before)


def _while_running(work: Callable[[], Any], ask: Callable[[], Any], times: int) -> list[tuple[str, Any]]:
    """(place, what was answered) at every line of pilae's updates that `work` runs, the first times it does."""
    found: list[tuple[str, Any]] = []
    passed: Counter = Counter()

    def trace(frame: Any, event: str, argument: Any) -> Any:
        place = _place(frame)
        if place is None:
            return None
        passed[place] += event == "line"
        if event == "line" and passed[place] <= times:
            sys.settrace(None)
            try:
                found.append((place, ask()))
            except Exception as error:
                raise Broken(f"asked before {place}: {type(error).__name__}: {error}") from error
            finally:
                sys.settrace(trace)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return found


# ------------------------------------------------------------------------------------------------- processes


def _ask_in_processes(method: str, count: int) -> int:
    """A pool of processes, each with its own copy of a stale model."""
    model, X = _models()["stale classifier"]
    serial = _answers(copy.deepcopy(model), X)
    with warnings.catch_warnings():
        # forking beside the threads of BLAS is what is tried here
        warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)
        pool = multiprocessing.get_context(method).Pool(count)
    with pool:
        for answers in pool.map(partial(_answers, model), [X] * 2 * count, chunksize=1):
            if not _same(answers, serial):
                raise Broken(f"{count} processes by {method}: one had another answer than this one")
        pool.close()
        pool.join()
    return 2 * count


def _fit_and_count(seed: int) -> int:
    """The most BLAS threads a worker has after a fit."""
    X, y, _ = _data(seed=seed)
    PILAEClassifier(random_state=0).fit(X, y)
    return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


def _blas_threads_in_joblib(workers: int) -> int:
    """The most BLAS threads of a worker: all of them together are no more than the cores."""
    cores = len(os.sched_getaffinity(0))
    try:
        counts = joblib.Parallel(n_jobs=workers, backend="loky")(joblib.delayed(_fit_and_count)(k) for k in range(4))
    finally:
        get_reusable_executor().shutdown(wait=True)
    if workers * max(counts) > max(cores, workers):
        raise Broken(f"{workers} joblib workers with {max(counts)} BLAS threads each on {cores} cores")
    return max(counts)


# ------------------------------------------------------------------------------------------------- numbers of threads


def _numbers_of_threads() -> dict[str, float]:
    """Outputs of models fitted with 1, 2 and 4 threads, apart by rounding only."""
    X, y, target = _data(2000, 60)
    many = []
    makes = {
        "no layer": lambda: PILAERegressor(depth=0, ridge=1e-4, **HIDDEN).fit(X, target),
        "one layer": lambda: PILAERegressor(width=[40], ridge=1e-4, **HIDDEN).fit(X, target),
        "float32": lambda: PILAERegressor(depth=0, ridge=1e-3, **HIDDEN).fit(X.astype(np.float32), target),
        "classifier": lambda: PILAEClassifier(depth=0, ridge=1e-4, **HIDDEN).fit(X, y),
    }
    worst = {}
    for name, make in makes.items():
        outputs = []
        for count in (1, 2, 4):
            with threadpool_limits(count), _small_parts(count, many):
                model = make()
                rows = X.astype(model.network_.dtype)
                outputs.append(model.decision_function(rows) if hasattr(model, "classes_") else model.predict(rows))
        apart = max(float(np.max(np.abs(other - outputs[0]))) for other in outputs[1:]) / float(np.std(outputs[0]))
        limit = bound(model, len(X))
        if not apart <= limit:
            raise Broken(f"{name}: with another number of threads outputs are {apart:.3g} away, above {limit:.3g}")
        worst[name] = float(f"{apart / limit:.2g}")
    if set(many) != {1, 2, 4}:
        raise Broken(f"work was cut for {sorted(set(many))} threads, not for 1, 2 and 4")
    return worst


@contextmanager
def _small_parts(count: int, many: list[int]):
    """Even this small work is cut in parts, as on a machine of so many processors; how many threads it got is noted."""
    before = pilae_threads.PART, pilae_threads.cpus, pilae_threads._share

    def share(wanted: int) -> int:
        many.append(wanted)
        return wanted

    pilae_threads.PART, pilae_threads.cpus, pilae_threads._share = 1e4, lambda: count, share
    if count == 1:
        many.append(1)  # nothing is cut then
    try:
        yield
    finally:
        pilae_threads.PART, pilae_threads.cpus, pilae_threads._share = before


def bound(model: Any, n: int) -> float:
    """What sums in another order may move outputs by: the ridge bound of docs/maths.md, of the output layer."""
    head = model.head_
    moments: Moments = head.output.moments
    _, G, _ = standardised(moments, head.hidden)
    values, lam = np.linalg.eigvalsh(G), head.output.ridge * moments.weight
    eps = float(np.finfo(moments.product).eps)
    return 4 * (n + len(G)) ** 0.5 * eps * (values[-1] + lam) / (max(values[0], 0.0) + lam)
