"""Load: a process that predicts a million times, fits thousands of models, updates, saves and loads them holds no more
memory, objects, files or threads at the end than near the beginning, and its answers stay the same.

Memory is counted twice: what the process holds (RssAnon, where a leak in compiled code shows too) over the whole run,
and every byte that Python and NumPy have asked for (tracemalloc) over a short one, where one object left behind shows.
"""

from __future__ import annotations

import gc
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

import pilae
from pilae import (
    SHLN,
    ConvPILAE,
    PILAEClassifier,
    PILAERegressor,
    PILAutoencoder,
    PILClassifier,
    PILRegressor,
    StackedPILAE,
)
from torture.harness import Broken, anonymous_megabytes, spread

QUICK = {"predictions": 4_000, "fixed_fits": 96, "automatic_fits": 8, "lives": 8}
FULL = {"predictions": 1_000_000, "fixed_fits": 10_000, "automatic_fits": 1_000, "lives": 1_000}

PROCESSES = 2

MEGABYTES = 1.0
"""What a process may hold more at the end than after a quarter of its calls, since the allocator's pools vary: at full
count that is 3 bytes a prediction, 280 bytes a fit of a given structure, 2.8 kB an automatic one."""

STRAY_BYTES, STRAY_OBJECTS = 32_768, 0.5
"""What the traced calls may leave behind: the bytes that NumPy's cache of small arrays varies by, all of them together,
and no object each."""


def run(predictions: int, fixed_fits: int, automatic_fits: int, lives: int) -> dict[str, Any]:
    counts = {"predictions": predictions, "fixed_fits": fixed_fits, "automatic_fits": automatic_fits, "lives": lives}
    items = [(name, count // PROCESSES) for name, count in counts.items() for _ in range(PROCESSES)]
    found = spread(_worker, items, PROCESSES)
    figures: dict[str, Any] = {name: found[name] for name in counts}
    for name in counts:
        figures[f"{name}_kilobytes_more"] = round(found[f"{name} kilobytes"] / PROCESSES)
        figures[f"{name}_stray_bytes"] = round(found[f"{name} stray"] / PROCESSES)
        figures[f"{name}_cpu_microseconds_each"] = round(found[f"{name} seconds"] / found[name] * 1e6)
    return figures


def _worker(item: tuple[str, int]) -> Counter:
    name, count = item
    with tempfile.TemporaryDirectory() as folder:
        steps = {"predictions": _predictions, "fixed_fits": _fixed, "automatic_fits": _automatic, "lives": _lives}
        step = partial(next, steps[name](Path(folder)))
        repeat = f"pytest tests/torture --full -k load, or torture.load._worker({item!r})"
        step()  # what is called later is made here
        gc.collect()
        gc.freeze()  # nobody looks again at what was there before: this process is a child and will end
        grown, seconds = _held(step, count, name, repeat)
        stray = _traced(step, count // 100 + 2, name, repeat)
    return Counter({name: count, f"{name} kilobytes": grown, f"{name} seconds": seconds, f"{name} stray": stray})


def _held(step: Callable[[], Any], count: int, name: str, repeat: str) -> tuple[float, float]:
    """Kilobytes that the process holds more after the last quarter of the calls than after the first; CPU seconds."""
    held, resources, seconds = [], [], 0.0
    for part in range(4):
        start = time.process_time()
        for _ in range(count // 4 + (count % 4 if part == 0 else 0)):
            step()
        seconds += time.process_time() - start
        gc.collect()
        held.append(anonymous_megabytes())
        resources.append({what: len(list(Path(f"/proc/self/{what}").iterdir())) for what in ("fd", "task")})
    if held[-1] - held[0] > MEGABYTES:
        words = ", ".join(f"{megabytes:.1f}" for megabytes in held)
        raise Broken(f"{name}: memory grew to {words} MB after each quarter of {count:,} calls: {repeat}")
    if resources[-1] != resources[0]:
        raise Broken(f"{name}: open files and threads grew from {resources[0]} to {resources[-1]}: {repeat}")
    return max(0.0, held[-1] - held[0]) * 1024, seconds


def _traced(step: Callable[[], Any], count: int, name: str, repeat: str) -> int:
    """Bytes that the second half of 2 * count calls leaves behind."""
    tracemalloc.start()
    try:
        bytes_held, objects = [], []
        for _ in range(2):
            for _ in range(count):
                step()
            gc.collect()
            objects.append(len(gc.get_objects()))
            bytes_held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    stray, more = bytes_held[1] - bytes_held[0], objects[1] - objects[0]
    if stray > STRAY_BYTES or more > STRAY_OBJECTS * count:
        raise Broken(f"{name}: {count} calls left {stray:,} bytes and {more:,} objects behind: {repeat}")
    return max(0, stray)


# ------------------------------------------------------------------------------------------------- what is called


def _data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 4)) + y[:, None]
    return X, y, X @ np.array([1.0, 2.0, -1.0, 0.5])


def _predictions(folder: Path) -> Iterator[None]:
    """Single rows, asked in turn of a classifier and a regressor; every answer is the one of the first time."""
    X, y, z = _data()
    classifier, regressor = PILAEClassifier(random_state=0).fit(X, y), PILAERegressor(random_state=0).fit(X, z)
    rows = [X[k : k + 1] for k in range(len(X))]
    calls = [(ask, row) for row in rows for ask in (classifier.predict, classifier.predict_proba, regressor.predict)]
    known = [ask(row)[0] for ask, row in calls]
    for (ask, row), answer in cycle(zip(calls, known, strict=True)):
        if not np.array_equal(ask(row)[0], answer):
            raise Broken(f"{ask.__qualname__} of {row.tolist()} was {answer} once and is another now")
        yield


def _fixed(folder: Path) -> Iterator[None]:
    """Networks of a given structure, with every kind of head, input and encoder in turn."""
    X, y, z = _data()
    blocks = pilae.scan_blocks(lambda: iter([(X[:30], y[:30]), (X[30:], y[30:])]))
    given: dict[str, Any] = {"depth": 1, "width": 3, "random_state": 0}
    kinds = (
        (PILAEClassifier(head=SHLN(width=5), **given), X, y),
        (PILAERegressor(head=SHLN(width=5), **given), X, z),
        (PILAEClassifier(head="ridge", **given), X, y),
        (PILAEClassifier(head="softmax", **given), X, y),
        (PILAEClassifier(head=SHLN(width=5), **given), scipy.sparse.csr_array(X), y),
        (PILAEClassifier(head=SHLN(width=5), **given), blocks, None),
        (PILAERegressor(layer=PILAutoencoder(encoder="truncated"), head=SHLN(width=5), **given), X, z),
        (StackedPILAE(width=[3, 2]), X, None),
        (PILClassifier(), X, y),
        (PILRegressor(), X, z),
        (PILAEClassifier(dtype="float32", head=SHLN(width=5), **given), X, y),
        (PILAEClassifier(skip=True, head=SHLN(width=5), **given), X, y),
    )
    for model, rows, targets in cycle(kinds):
        clone(model).fit(rows, targets)
        yield


def _automatic(folder: Path) -> Iterator[None]:
    """The whole search, in turn for classes and for numbers."""
    X, y, z = _data()
    for model, targets in cycle(((PILAEClassifier(random_state=0), y), (PILAERegressor(random_state=0), z))):
        clone(model).fit(X, targets)
        yield


def _lives(folder: Path) -> Iterator[None]:
    """A model is fitted, saved, loaded, updated, merged, exported and asked, images too; and two calls are refused."""
    X, y, _ = _data()
    images = np.random.default_rng(0).random((30, 6, 6))
    path = folder / "model.pilae"
    while True:
        model = PILAEClassifier(depth=1, width=3, random_state=0, head=SHLN(width=5)).fit(X[:40], y[:40])
        model.save(path)
        one, two = pilae.load(path), model.fork()
        one.partial_fit(X[40:], y[40:]).forget(X[40:50], y[40:50])
        two.partial_fit(X[50:], y[50:])
        one.merge(two)
        one.recalibrate(X, y)
        one.transform(X)
        one.to_onnx(folder / "model.onnx")
        convolution = ConvPILAE(patch=3, filters=4, pool=2, random_state=0).fit(images)
        convolution.save(path)
        pilae.load(path).transform(images)
        for refused in (partial(model.fit, X * np.nan, y), partial(pilae.load, folder / "model.onnx")):
            try:
                refused()
            except ValueError:
                continue
            raise Broken(f"{refused} was expected to be refused")
        yield
