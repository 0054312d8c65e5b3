"""A cluster that misbehaves: workers killed while they add up rows, slow ones, partitions that fail once or always.

Promised: the model is the one that memory would have given, whatever happened on the way (a partition is counted once,
however often its task was run), or the source's own error comes back and the estimator is as it was.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import pilae
from helpers import rounding, tolerance
from torture.harness import Broken

QUICK = {"kills": 1, "failures": 1}
FULL = {"kills": 15, "failures": 15}

ROWS, PARTS = 600, 6
HUNG = 3600
"""Seconds after which a worker that does not come back is given up, a guard: on busy cores importing takes minutes."""

SETTINGS = {
    "distributed.scheduler.allowed-failures": 10,
    # a name that was lost 15 s ago is given up for good where no worker has it just then: the next one was killed too
    "distributed.deploy.lost-worker-timeout": "1h",
    "logging.distributed": "critical",
}
NETWORK: dict[str, Any] = {"width": [4], "ridge": 1e-3, "head": pilae.SHLN(width=15)}


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(ROWS) % 3
    return rng.standard_normal((ROWS, 5)) + 1.5 * np.eye(3, 5)[y], y


def slowly(block: np.ndarray, seconds: float) -> np.ndarray:
    time.sleep(seconds)
    return block


def deadly(block: np.ndarray, place: str, at: int) -> np.ndarray:
    """Counts how often blocks are read, and kills the worker that reads one as the `at`-th, once."""
    if len(block):
        with open(f"{place}/reads", "ab", buffering=0) as reads:
            reads.write(b".")
            if reads.tell() == at:
                Path(place, "killed").write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGKILL)
    return block


def failing(block: np.ndarray, folder: str, times: int) -> np.ndarray:
    """Fails the first `times` times that this block is read."""
    if len(block) and times:
        for k in range(times):
            mark = Path(folder) / f"{block[0, 0]:.17g}-{k}"
            if not mark.exists():
                mark.touch()
                raise OSError("the disk of this worker did not answer")
    return block


def same(model: Any, expected: np.ndarray, X: np.ndarray, what: str) -> None:
    found = model.decision_function(X)  # sums are merged in another order
    if not np.abs(found - expected).max() <= tolerance(**rounding(model)) * np.abs(expected).max():
        raise Broken(f"{what}: outputs differ by {np.abs(found - expected).max():.1e}")


def await_another(cluster: Any, client: Any, killed: int) -> None:
    """Wait until the nanny of a worker that was killed has started another, and the scheduler knows it."""
    end = time.monotonic() + HUNG
    while (
        len({worker.pid for worker in cluster.workers.values()} - {killed, None}) < 2
        or len(client.scheduler_info()["workers"]) < 2
    ):
        if len(cluster.workers) < 2 or time.monotonic() > end:
            raise Broken("no worker came after the one that was killed")
        time.sleep(0.05)


def kill_workers(cluster: Any, client: Any, folder: str, kills: int) -> int:
    """Kill workers one after another; how many of them died in the middle of a fit.

    Every other one dies while it reads a block, which is in the middle however fast the machine is, the others at some
    moment by the clock: between the blocks, too, or when the fit is over.
    """
    import dask.array as da

    X, y = data()
    expected = pilae.PILAEClassifier(**NETWORK).fit(X, y).decision_function(X)
    rng = np.random.default_rng(9)
    chunk, in_time = ROWS // PARTS, 0

    def fit(name: str, at: int) -> tuple[Any, Path]:
        place = Path(folder) / name
        place.mkdir()
        slow = da.from_array(X, chunks=(chunk, 5)).map_blocks(slowly, seconds=0.02, dtype=X.dtype)
        read = slow.map_blocks(deadly, str(place), at, dtype=X.dtype)
        return pilae.PILAEClassifier(**NETWORK).fit(read, da.from_array(y, chunks=chunk)), place

    start = time.perf_counter()
    model, place = fit("slow workers", at=0)
    seconds, reads = time.perf_counter() - start, (place / "reads").stat().st_size
    same(model, expected, X, "slow workers")
    for k in range(kills):
        if k % 2 == 0:
            model, place = fit(f"kill {k}", at=int(rng.integers(1, reads + 1)))
            if not (place / "killed").exists():
                raise Broken(f"kill {k}: no worker died in the middle of the fit")
            killed = int((place / "killed").read_text())
            in_time += 1
        else:
            pids = [worker.pid for worker in cluster.workers.values()]
            killed = pids[k // 2 % len(pids)]
            killer = threading.Timer(rng.uniform(0, seconds / 2), os.kill, (killed, signal.SIGKILL))
            killer.start()
            model, _ = fit(f"kill {k}", at=0)
            in_time += not killer.is_alive()
            killer.join()
        same(model, expected, X, f"worker {k} killed")
        await_another(cluster, client, killed)
    return in_time


def run(kills: int, failures: int) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dask's own about workers that are gone
        return _run(kills, failures)


def _run(kills: int, failures: int) -> dict[str, Any]:
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    X, y = data()
    expected = pilae.PILAEClassifier(**NETWORK).fit(X, y).decision_function(X)
    chunk = ROWS // PARTS
    labels = da.from_array(y, chunks=chunk)
    dask.config.set(SETTINGS)
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        in_time = kill_workers(cluster, client, folder, kills)
        for k in range(failures):
            place = Path(folder) / str(k)
            place.mkdir()
            with dask.annotate(retries=3), dask.config.set({"optimization.fuse.active": False}):
                shaky = da.from_array(X, chunks=(chunk, 5)).map_blocks(failing, str(place), times=2, dtype=X.dtype)
                same(pilae.PILAEClassifier(**NETWORK).fit(shaky, labels), expected, X, f"failing source {k}")
            if len(list(place.iterdir())) != 2 * PARTS:
                raise Broken(f"failing source {k}: not every partition failed twice")
        model = pilae.PILAEClassifier(**NETWORK)
        before = dict(vars(model))
        broken = da.from_array(X, chunks=(chunk, 5)).map_blocks(failing, folder, times=10**6, dtype=X.dtype)
        try:
            model.fit(broken, labels)
        except OSError as error:
            if "did not answer" not in str(error) or vars(model) != before:
                raise Broken(f"a source that always fails: {error}, or the estimator was changed") from error
        else:
            raise Broken("a source that always fails gave a model")
    return {
        "workers_killed": kills,
        "in_the_middle_of_a_fit": in_time,
        "slow": 1,
        "sources_that_failed_twice": failures * PARTS,
        "always_failing": 1,
    }
