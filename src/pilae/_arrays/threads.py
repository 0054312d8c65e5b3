"""How many threads: by the size of each piece of work, and by what this process may use.

The threads of a BLAS wait for one another by spinning. Beside other work, or under a quota, they hold the processors
that the others need, and a product takes as long as it takes until all of them run at the same moment, many times over.
So while pilae works every BLAS has one thread, and what is large is cut into parts here, for plain threads that meet
once, at the end, and sleep until then.
"""

import contextlib
import contextvars
import ctypes
import functools
import itertools
import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from .buffers import close_pool, open_pool

PART = 5e7
"""Operations that are worth a thread of their own: a millisecond or two, where starting one takes a tenth of that."""

TOUCHED = 30.0
"""Operations of products that a number is worth which is read, changed and written."""

PARTS = 2
"""Parts for each thread, where they are large enough: who comes late has less left to do."""

UNSHARED = 9000
"""Products of numbers up to which no BLAS uses a second thread, not even for a matrix and a vector."""

MANY_NUMBERS = 2**20
"""Tables of fewer numbers are small work for those whose threads are not ours: torch, and heads that are estimators."""

SMALL_TABLE = 10_000
"""Numbers of a table whose search is small calls of NumPy from end to end."""

PATIENCE = 5.0
"""Seconds that a small search waits for another at most: a courtesy, and never a reason to stand still."""


@dataclass(frozen=True, eq=False)
class Pool:
    """A pool of threads that belongs to somebody else."""

    get: Callable[[], int | None]
    set: Callable[[int], object]
    per_thread: bool
    """Whether every thread may have a number of its own: OpenMP keeps it so, and MKL."""


_lock = threading.RLock()
"""Of a thread that holds it a signal's handler may ask a model something: it must not wait for itself."""

_turn = threading.RLock()
"""Of the one small search (`in_turn`); a thread that has it may search again within."""

_calls: dict[int, int] = {}
"""The calls of pilae under way, and the thread of each."""

_in_part = contextvars.ContextVar("in_part", default=False)
"""Whether this is a part of some work: it is not cut again, whichever thread does it."""

_counts: dict[Pool, int] = {}
"""The threads that each pool had when the first of these calls came."""


class sharing:
    """What is computed within takes no more of the machine than it can use: one thread in every pool, more for large
    pieces (`in_parts`). When the last call leaves, whatever happened, the pools are as they were found.

    `arrays` are what the call works on: torch's pool is left alone unless one of them is a tensor on the CPU. `work`,
    where it is known, are the products of one: none of less than UNSHARED is worth the microseconds.
    """

    __slots__ = ("arrays", "work")

    def __init__(self, *arrays: object, work: float = math.inf) -> None:
        self.arrays, self.work = arrays, work

    def __enter__(self) -> None:
        if self.work >= UNSHARED:
            _come(id(self), self.arrays)

    def __exit__(self, *error: object) -> None:
        if id(self) in _calls:
            _leave(id(self))

    def __del__(self) -> None:
        """Ctrl-C can come before the first line of `__exit__`, or in its middle: nobody else would leave then."""
        self.__exit__()


def _come(call: int, arrays: tuple) -> None:
    me = threading.get_ident()
    with _lock:
        nested = me in _calls.values()
        _calls[call] = me
        if nested:
            return
        open_pool()
        for pool in _pools():
            if pool not in _counts and (count := pool.get()):
                _counts[pool] = count
            if _counts.get(pool, 1) > 1:
                pool.set(1)
        size = _tensor_numbers(arrays)
        if size is not None:
            pool = _torch_pool()
            _counts.setdefault(pool, pool.get() or 1)
            pool.set(1 if size < MANY_NUMBERS else _share(_counts[pool]))


def _leave(call: int) -> None:
    with _lock:
        me = _calls.get(call)
        others = [thread for other, thread in _calls.items() if other != call]
        if me == threading.get_ident() and me not in others:
            close_pool()
        if me is not None and me not in others:
            for pool, count in _counts.items():
                if count > 1 and (pool.per_thread or not others):
                    pool.set(count)
        if not others:
            _counts.clear()
        _calls.pop(call, None)


@functools.cache
def _pools() -> tuple[Pool, ...]:
    """Those of the BLAS libraries of this process. One that is not known is left alone, and nothing is cut in parts."""
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return tuple(Pool(_function(each, "get"), _function(each, "set"), not _is_one_for_all(each)) for each in libraries)


def _is_one_for_all(library) -> bool:
    """Whether the number of threads is one for the whole process, whichever thread sets it."""
    return library.internal_api == "openblas" and library.threading_layer == "pthreads"


def _function(library, what: str) -> Callable:
    """What gets or sets ("get", "set") the number of threads of a BLAS.

    threadpoolctl lets one thread of a process set that of an OpenBLAS, and does nothing, silently, for others; fits may
    come from any, and here it is counted who is at work. So its own functions are called, which are quicker, too.
    """
    if _is_one_for_all(library):
        blas = ctypes.CDLL(library.filepath)
        for prefix, suffix in itertools.product(("", "scipy_"), ("", "64_", "_64")):
            if hasattr(blas, name := f"{prefix}openblas_{what}_num_threads{suffix}"):
                return getattr(blas, name)
    return getattr(library, f"{what}_num_threads")


@functools.cache
def _torch_pool() -> Pool:
    torch = sys.modules["torch"]
    return Pool(torch.get_num_threads, torch.set_num_threads, True)


def _tensor_numbers(arrays: tuple) -> int | None:
    """The size of the largest tensor of torch on the CPU among them."""
    torch = sys.modules.get("torch")
    sizes = [x.numel() for x in arrays if torch and isinstance(x, torch.Tensor) and x.device.type == "cpu"]
    return max(sizes, default=None)


@contextlib.contextmanager
def lent(size: int) -> Iterator[None]:
    """Somebody else's code that works on so many numbers has the pools as they were found, if these are many."""
    if size < MANY_NUMBERS or not _calls:
        yield
        return
    pools = [pool for pool in _pools() if pool in _counts]
    try:
        for pool in pools:
            pool.set(_share(_counts[pool]))
        yield
    finally:
        for pool in pools:
            pool.set(1)


class in_turn:
    """Searches on small tables, of so many numbers, one after another: they hold the interpreter nearly all the time,
    and side by side in threads of one process they would only wait for it, at every call of NumPy."""

    __slots__ = ("mine", "size")

    def __init__(self, size: int) -> None:
        self.size, self.mine = size, False

    def __enter__(self) -> None:
        self.mine = self.size < SMALL_TABLE and _turn.acquire(timeout=PATIENCE)

    def __exit__(self, *error: object) -> None:
        if self.mine:
            self.mine = False
            _turn.release()


def threads(work: float) -> int:
    """How many threads so many operations are worth, the caller's included, of those that this process may use.

    Other calls under way take some of them, but do not change this number: what is cut in parts by it is the same to
    the last bit, whoever else computes (but for what is `lent`).
    """
    if work < 2 * PART or _in_part.get() or threading.get_ident() not in _calls.values():
        return 1
    return min(int(work / PART), _allowed())


def _allowed() -> int:
    """By the pools as they were found, and by the processors."""
    return min(*_counts.values(), cpus()) if _counts else 1


def _share(count: int) -> int:
    """Of so many threads, those for one of the calls under way."""
    return max(1, min(count, cpus()) // max(1, len(set(_calls.values()))))


def in_parts(f: Callable[[slice], object], n: int, work: float) -> None:
    """f of slices that make up range(n), at once in as many threads as so many operations are worth and are free.

    Whoever is free takes the next slice, the caller too: beside other work a helper may come late, or not at all.
    """
    count = min(threads(work), n)
    if count < 2:
        f(slice(0, n))
        return
    parts = min(n, int(work / PART), PARTS * count)
    waiting = deque(slice(a, b) for a, b in itertools.pairwise(n * k // parts for k in range(parts + 1)))

    def run() -> None:
        token = _in_part.set(True)
        try:
            while True:
                try:
                    part = waiting.popleft()
                except IndexError:
                    return
                f(part)
        finally:
            waiting.clear()  # after an error, whoever made it, nothing more is begun
            _in_part.reset(token)

    helpers: list[Future] = []
    try:
        for _ in range(_share(count) - 1):
            helpers.append(_ask(run))
        run()
    finally:
        waiting.clear()
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()


_team: list[threading.Thread] = []
_asked: SimpleQueue[tuple[Future, Callable[[], None]]] = SimpleQueue()
"""Threads that sleep until they are asked, and what they are asked: a new thread waits longer for a processor than one
that is woken. Not an executor's: those take no work any more while the interpreter waits for a thread to end, and that
thread may be fitting."""


def _ask(run: Callable[[], None]) -> Future:
    """Some thread of the team calls it, unless that is cancelled before."""
    answer: Future = Future()
    # np.errstate is part of the context, which other threads do not have
    _asked.put((answer, functools.partial(contextvars.copy_context().run, run)))
    if len(_team) < (os.cpu_count() or 1) and not _asked.empty():
        helper = threading.Thread(target=_help, args=(_asked,), name="pilae", daemon=True)
        with contextlib.suppress(RuntimeError):  # no thread can be started here and now: whoever asks works alone
            helper.start()
            _team.append(helper)
    return answer


def _help(asked: SimpleQueue) -> None:
    while True:
        answer, run = asked.get()
        if answer.set_running_or_notify_cancel():
            try:
                for pool in list(_counts):
                    if pool.per_thread:
                        pool.set(1)
                run()
            except BaseException as error:
                answer.set_exception(error)
            else:
                answer.set_result(None)
        del answer, run  # and the arrays that they hold


def cpus() -> int:
    """Processors that this process may use: by affinity, by its control group, and by what joblib is told."""
    ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("LOKY_MAX_CPU_COUNT", "")
    return max(1, int(min(ours, quota(), int(limit) if limit.isdigit() else ours)))


@functools.cache
def quota(groups: Path = Path("/sys/fs/cgroup"), memberships: Path = Path("/proc/self/cgroup")) -> float:
    """Processors' worth of time that the control groups of this process allow, rounded up; infinity without a limit.

    A group is bound by those above it. In a container the path of its group may not be there: then its limit stands at
    the root of what it sees.
    """
    least = math.inf
    for line in _text(memberships).splitlines():
        names, _, path = line.partition(":")[2].partition(":")
        if names and "cpu" not in names.split(","):
            continue
        root = groups / names
        group = root / path.lstrip("/")
        least = min(least, *(_limit(folder) for folder in (group, *group.parents) if folder.is_relative_to(root)))
    return least


def _limit(folder: Path) -> float:
    """The limit of one group: version 2 has both numbers in one file, version 1 has two."""
    text = _text(folder / "cpu.max") or f"{_text(folder / 'cpu.cfs_quota_us')} {_text(folder / 'cpu.cfs_period_us')}"
    numbers = text.split()
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers) or "0" in numbers:  # "max", or -1
        return math.inf
    return math.ceil(int(numbers[0]) / int(numbers[1]))


def _text(path: Path) -> str:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text()
    return ""


def _after_fork() -> None:
    """A child has only the thread that forked, and none of the calls of the others."""
    global _lock, _turn, _asked
    _lock, _turn, _asked = threading.RLock(), threading.RLock(), SimpleQueue()
    _team.clear()
    me = threading.get_ident()
    for call in [call for call, thread in _calls.items() if thread != me]:
        del _calls[call]
    if not _calls:
        for pool, count in _counts.items():
            pool.set(count)
        _counts.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
