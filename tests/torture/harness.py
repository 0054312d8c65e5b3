"""What the parts share: the error, their process, work spread over processes, memory."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import resource
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


class Broken(AssertionError):
    """A promise that was not kept; the message says how to see it again."""


def measure(name: str, counts: str, warned: str = "error") -> None:
    """The process of one part: the last line it prints is what it found. A warning is what it is in the other tests."""
    part = importlib.import_module(f"torture.{name}")
    warnings.simplefilter(warned)  # type: ignore[arg-type]
    warnings.filterwarnings("ignore", "This process .* is multi-threaded, use of fork", DeprecationWarning)
    start = time.perf_counter()
    found = part.run(**getattr(part, counts))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found | {"seconds": round(time.perf_counter() - start, 1), "peak_megabytes": round(peak)}))


def anonymous_megabytes() -> float:
    """Memory that this process holds and no file backs, now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    raise OSError("this system does not say how much memory a process holds")


def spread(work: Callable[[Any], Counter], items: Iterable[Any], processes: int = 2) -> Counter:
    """The sum of work(item) over forked processes. One that dies (a crash of the interpreter) is `Broken`."""
    items = list(items)
    if processes == 1:
        return sum((work(item) for item in items), Counter())
    context = multiprocessing.get_context("fork")
    found = context.SimpleQueue()
    total: Counter = Counter()
    waiting = list(enumerate(items))[::-1]
    running: dict[int, Any] = {}
    while waiting or running:
        while waiting and len(running) < processes:
            number, item = waiting.pop()
            child = context.Process(target=_child, args=(work, item, number, found), daemon=True)
            child.start()
            running[number] = child
        while not found.empty():
            number, counts, error = found.get()
            running.pop(number).join()
            if error is not None:
                raise Broken(error)
            total += counts
        for number, child in running.items():
            if child.exitcode not in (None, 0):
                raise Broken(f"the process with item {items[number]!r} ended with exit code {child.exitcode}")
        time.sleep(0.01)
    return total


def _child(work: Callable[[Any], Counter], item: Any, number: int, found: Any) -> None:
    try:
        found.put((number, work(item), None))
    except BaseException as error:
        found.put((number, None, f"item {item!r}: {error}\n{traceback.format_exc()}"))
