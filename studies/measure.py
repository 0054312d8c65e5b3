"""Time and memory: a matrix product in the same process as the yardstick, peak memory, the machine."""

import importlib.metadata
import os
import platform
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SIDE = 4000

BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
"""A process that uses a processor until the one that began it is gone, however that ended."""


def gemm_seconds(dtype: str = "float64", repeats: int = 3) -> float:
    """The best time of a 4000 x 4000 matrix product; in float64 that is one "GEMM"."""
    A = np.ones((SIDE, SIDE), dtype)
    return min(times_of(lambda: A @ A, repeats))


def seconds_of(function: Callable[[], Any], wait: Callable[[], object] | None = None) -> tuple[float, Any]:
    """Time of one call, and what it gave. A GPU works on by itself: `wait` comes before each look at the clock."""
    if wait is not None:
        wait()
    start = time.perf_counter()
    result = function()
    if wait is not None:
        wait()
    return time.perf_counter() - start, result


def times_of(function: Callable[[], Any], repeats: int, wait: Callable[[], object] | None = None) -> list[float]:
    """Times of several calls."""
    return [seconds_of(function, wait)[0] for _ in range(repeats)]


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Beside so many processes that each keep a processor busy."""
    with ExitStack() as stack:
        for _ in range(count):
            other = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY]))
            stack.callback(other.kill)
        yield


def end_cleanly() -> None:
    """Let SIGTERM end this process as Ctrl-C does: what was begun is ended, and what was made is taken away."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def on_gpu(*arrays: np.ndarray) -> list:
    """The arrays on the GPU, whose libraries are loaded before a clock starts."""
    import torch

    torch.linalg.cholesky(torch.eye(8, device="cuda"))
    return [torch.from_numpy(array).to("cuda") for array in arrays]


def clock(cuda: bool) -> float:
    """Seconds; a GPU, which works on by itself, is waited for."""
    if cuda:
        import torch

        torch.cuda.synchronize()
    return time.perf_counter()


class Timed(NamedTuple):
    result: Any
    seconds: float
    products: dict[str, float]
    """By dtype, seconds of a 4000 x 4000 product: the mean of right before and right after."""

    @property
    def gemm(self) -> float:
        """The time as a multiple of one GEMM."""
        return self.seconds / self.products["float64"]


def beside_products(function: Callable[[], Any], dtypes: Iterable[str] = ("float64",)) -> Timed:
    """One call between matrix products in the same process, so that its time means something on another machine."""
    before = {dtype: gemm_seconds(dtype) for dtype in dtypes}
    seconds, result = seconds_of(function)
    return Timed(result, seconds, {dtype: (first + gemm_seconds(dtype)) / 2 for dtype, first in before.items()})


def peak_megabytes() -> float:
    """Peak resident memory of this process in MiB, interpreter and data included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def describe() -> dict:
    """What a figure needs beside it: commit, machine, versions."""
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        names = [
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ]
        cpu = names[0] if names else cpu
    commit = os.environ.get("PILAE_COMMIT")  # where the history is not at hand
    if commit is None:
        git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
        commit = git.stdout.strip()
    packages = ("pilae", "numpy", "scipy", "scikit-learn", "array-api-compat")
    return {
        "commit": commit,
        "cpu": cpu,
        "cores": os.cpu_count(),
        "python": sys.version.split()[0],
        "versions": {name: version(name) for name in packages},
    }


def version(package: str) -> str:
    """Of an installed package, by its name in the registry."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # run from a folder, as on the GPU machine
        return "not installed"
