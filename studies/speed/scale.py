"""Rows without limit: time against rows, memory that does not grow, Dask's overhead.

    python -m studies.speed.scale          # 100 float32 columns, 10^5 to 10^7 rows (4 GB), a process each, and Dask
    python -m studies.speed.scale large    # 20 GB on disk, with 4 GB of address space for all of the fit
    python -m studies.speed.scale 1000000  # that case alone

Writes studies/speed/results/scale.json. The data is made once (a fixed teacher and noise) and kept in pilae_scale in
the folder for temporary files (TMPDIR).
"""

import os
import resource
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from pilae import SHLN, PILAEClassifier, scan_blocks
from studies.measure import gemm_seconds, seconds_of, times_of
from studies.store import run_cases

COLUMNS = 100
SIZES = (100_000, 1_000_000, 10_000_000)
LARGE = 50_000_000
NETWORK = {"depth": 0, "head": SHLN(256), "ridge": 1e-3, "random_state": 0}
BLOCK = 100_000
FOLDER = Path(tempfile.gettempdir()) / "pilae_scale"


def teacher() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((COLUMNS, 5)).astype(np.float32)


def block(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows k * BLOCK and on: five classes by a noisy, curved rule."""
    rng = np.random.default_rng([1, k])
    X = rng.standard_normal((BLOCK, COLUMNS), dtype=np.float32)
    scores = np.tanh(X @ teacher() / 5) + 0.3 * rng.standard_normal((BLOCK, 5), dtype=np.float32)
    return X, scores.argmax(axis=1).astype(np.int8)


def write(n: int) -> tuple[Path, Path]:
    """X and y as .npy files of n rows."""
    FOLDER.mkdir(exist_ok=True)
    paths = FOLDER / f"X{n}.npy", FOLDER / f"y{n}.npy"
    if not all(path.exists() for path in paths):
        part = [path.with_suffix(".part") for path in paths]
        X = np.lib.format.open_memmap(part[0], "w+", np.float32, (n, COLUMNS))
        y = np.lib.format.open_memmap(part[1], "w+", np.int8, (n,))
        for k in range(n // BLOCK):
            X[k * BLOCK : (k + 1) * BLOCK], y[k * BLOCK : (k + 1) * BLOCK] = block(k)
        X.flush()
        y.flush()
        del X, y
        for a, b in zip(part, paths, strict=True):
            a.rename(b)
    return paths


def anonymous_megabytes() -> float:
    """RssAnon: memory of our own, without the file pages a memmap shows."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return float("nan")


class Watch:
    """The largest anonymous memory seen, looked at ten times a second."""

    def __enter__(self) -> "Watch":
        import threading

        self.start = self.peak = anonymous_megabytes()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()
        return self

    def _look(self) -> None:
        while not self.stop.wait(0.1):
            self.peak = max(self.peak, anonymous_megabytes())

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()


def fit_case(n: int) -> dict:
    paths = write(n)
    X, y = (np.load(path, mmap_mode="r") for path in paths)
    for path in paths:
        with path.open("rb") as f:  # read once, so that every size begins with a warm cache if it fits
            while f.read(1 << 26):
                pass
    gemm = gemm_seconds()
    model = PILAEClassifier(**NETWORK)
    with Watch() as memory:
        seconds = min(times_of(lambda: model.fit(X, y), 1 if n > 10**6 else 3))  # short ones are noisy
    Z, t = block(10**6)
    return {
        "rows": n,
        "seconds": seconds,
        "gemm": seconds / gemm,
        "microseconds_a_row": 1e6 * seconds / n,
        "passes": model.n_passes_,
        "anonymous_megabytes_above_start": memory.peak - memory.start,
        "test_accuracy": model.score(Z, t),
        "loo_accuracy": model.loo_score_,
    }


def large_case() -> dict:
    """20 GB read block by block into buffers of our own, with the address space limited: no mapping of the file."""
    n = LARGE
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"X{n}.bin"
    if not path.exists():
        part = path.with_suffix(".part")
        with part.open("wb") as f:
            for k in range(n // BLOCK):
                f.write(block(k % 200)[0].tobytes())
        part.rename(path)
    labels = [block(k)[1] for k in range(200)]
    limit = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + 4 * 2**30, limit[1]))

    def blocks():
        with path.open("rb") as f:
            for k in range(n // BLOCK):
                X = np.fromfile(f, np.float32, BLOCK * COLUMNS).reshape(BLOCK, COLUMNS)
                yield X, labels[k % 200]

    with Watch() as memory:
        seconds, model = seconds_of(lambda: PILAEClassifier(**NETWORK).fit(scan_blocks(blocks)))
    return {
        "rows": n,
        "gigabytes_on_disk": path.stat().st_size / 1e9,
        "gigabytes_of_address_space_allowed": 4 * 2**30 / 1e9,
        "seconds": seconds,
        "microseconds_a_row": 1e6 * seconds / n,
        "passes": model.n_passes_,
        "anonymous_megabytes_above_start": memory.peak - memory.start,
        "loo_accuracy": model.loo_score_,
    }


def dask_case() -> dict:
    """64 blocks of 20,000 rows: a loop over blocks, and Dask's scheduler on the same blocks, one thread each."""
    import dask
    import dask.array as da

    parts = [block(k) for k in range(13)]
    X = np.concatenate([X for X, _ in parts])[: 64 * 20_000]
    y = np.concatenate([y for _, y in parts])[: 64 * 20_000]
    loop, tasks = [], []
    for _ in range(3):
        loop += times_of(lambda: PILAEClassifier(**NETWORK, block_rows=20_000).fit(X, y), 1)
        A, b = da.from_array(X, chunks=(20_000, COLUMNS), name=False), da.from_array(y, chunks=20_000, name=False)
        with dask.config.set(scheduler="synchronous"):
            tasks += times_of(lambda A=A, b=b: PILAEClassifier(**NETWORK).fit(A, b), 1)
    return {"loop_seconds": min(loop), "dask_seconds": min(tasks), "overhead": min(tasks) / min(loop) - 1}


def workers_case() -> dict:
    """The same blocks on one worker process of one thread, and on two; rows are with the workers before the fit."""
    import dask
    import dask.array as da
    from dask.distributed import Client, LocalCluster

    found = {}
    for count in (1, 2):
        with (
            LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            parts = [dask.delayed(block)(k) for k in range(13)]
            X = da.concatenate([da.from_delayed(part[0], (BLOCK, COLUMNS), np.float32) for part in parts])
            y = da.concatenate([da.from_delayed(part[1], (BLOCK,), np.int8) for part in parts])
            X, y = client.persist([X.rechunk((20_000, COLUMNS)), y.rechunk(20_000)])
            client.gather(client.compute([X.sum(), y.sum()]))
            found[count] = min(times_of(lambda X=X, y=y: PILAEClassifier(**NETWORK).fit(X, y), 4))
    return {"one_worker_seconds": found[1], "two_workers_seconds": found[2], "speedup": found[1] / found[2]}


CASES = {str(n): partial(fit_case, n) for n in SIZES} | {
    "dask": dask_case,
    "workers": workers_case,
    "large": large_case,
}

if __name__ == "__main__":
    run_cases(__spec__.name, CASES, default=[name for name in CASES if name != "large"])
