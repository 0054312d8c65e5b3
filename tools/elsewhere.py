"""The tests as other machines would run them: `make test-elsewhere`.

Other kernels of the BLAS (an OpenBLAS takes the one it is told, where the processor can run it), other numbers of
threads, beside as many busy processes as there are cores, in another order, with other examples of hypothesis. Every
run covers several of these at once, and all of them are covered; each says how to repeat it.

    python -m tools.elsewhere                          # every run
    python -m tools.elsewhere Prescott --seed 7        # one of them, with the order and the examples of this seed
    python -m tools.elsewhere Haswell -- tests/test_loo.py
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from studies.measure import busy, end_cleanly

ROOT = Path(__file__).parents[1]
FAST = ["-m", "not slow and not browser"]

PROBE = """
import json, numpy, scipy.linalg, threadpoolctl
print(json.dumps([[pool["architecture"], pool["num_threads"]] for pool in threadpoolctl.threadpool_info()
                  if pool["internal_api"] == "openblas"]))
"""
"""What NumPy's and SciPy's OpenBLAS say of themselves, in the environment of a run."""


class Run(NamedTuple):
    """One run of the tests, under the conditions named."""

    needs: tuple[str, ...] = ()
    """Flags of the processor; the name of the run is the kernel where there are any."""
    threads: int = 1
    busy: bool = False
    shuffled: bool = False
    """In another order and with other examples."""


RUNS = {
    "Haswell": Run(("avx2", "fma"), threads=1, shuffled=True),
    "Sandybridge": Run(("avx",), threads=2, busy=True),
    "SkylakeX": Run(("avx512f", "avx512vl", "avx512bw"), threads=2, shuffled=True),
    "Prescott": Run(("pni",), threads=1),
    "own": Run(threads=2, busy=True, shuffled=True),
}
"""The kernels are those of the wheels of NumPy and SciPy, where Zen is another name of Haswell's."""

SAID = {"Prescott": "Katmai"}
"""The oldest goes by the name of a still older one."""


def conditions(name: str, seed: int) -> tuple[dict[str, str], list[str]]:
    """(environment variables, options of pytest) of a run."""
    run = RUNS[name]
    environment = {"OPENBLAS_NUM_THREADS": str(run.threads), "OMP_NUM_THREADS": str(run.threads)}
    options = []
    if run.needs:
        environment["OPENBLAS_CORETYPE"] = name
    if run.shuffled:
        environment["HYPOTHESIS_PROFILE"] = "other"
        options = [f"--order={seed}", f"--hypothesis-seed={seed}"]
    return environment, options


def flags() -> set[str]:
    """What the processor can do, as Linux says it; nothing elsewhere."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return {word for line in lines if line.startswith("flags") for word in line.split(":")[1].split()}


def check_kernel(name: str, environment: dict[str, str]) -> str:
    """The kernel that is really used; an error if it is not the one asked for, or not with so many threads."""
    out = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=True)
    found = json.loads(out.stdout)
    if not found:
        raise SystemExit("NumPy and SciPy have no OpenBLAS here: nothing can be told to use another kernel.")
    wanted = SAID.get(name, name) if RUNS[name].needs else found[0][0]
    threads = min(RUNS[name].threads, len(os.sched_getaffinity(0)))
    if any(kernel not in (wanted, name) or count != threads for kernel, count in found):
        raise SystemExit(
            f"Asked for {wanted} with {threads} threads, OpenBLAS uses {found}: this run would say nothing."
        )
    return wanted


def run_tests(name: str, seed: int, tests: list[str]) -> dict[str, str]:
    """One run, shown as it goes; how it ended."""
    more, options = conditions(name, seed)
    environment = {**os.environ, **more}
    kernel = check_kernel(name, environment)
    cores = os.cpu_count() or 1
    call = [sys.executable, "-m", "pytest", "-q", *options, *tests]
    words = " ".join([*(f"{key}={value}" for key, value in more.items()), shlex.join(["python", *call[1:]])])
    repeat = words + (f"    # beside {cores} of: python -c 'while True: pass'" if RUNS[name].busy else "")
    print(f"\n=== {name}: {repeat}", flush=True)
    start = time.perf_counter()
    with ExitStack() as stack:
        stack.enter_context(busy(cores if RUNS[name].busy else 0))
        tests_running = stack.enter_context(
            subprocess.Popen(call, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        )
        stack.push(lambda error, *_: tests_running.kill() if error else None)  # not left behind
        lines = []
        for line in tests_running.stdout:  # type: ignore[union-attr]
            print(line, end="", flush=True)
            lines.append(line.strip())
    said, code = lines[-1] if lines else "", tests_running.returncode
    return {
        "run": name,
        "kernel": kernel,
        "threads": str(RUNS[name].threads),
        "beside": f"{cores} busy" if RUNS[name].busy else "nothing",
        "order": f"seed {seed}" if RUNS[name].shuffled else "as written",
        "seconds": f"{time.perf_counter() - start:.0f}",
        "result": f"BROKEN (exit code {code}): {said}" if code else said.partition(" in ")[0],
        "repeat": repeat,
    }


def main(arguments: list[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    given, tests = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, FAST)
    parser = argparse.ArgumentParser(prog="python -m tools.elsewhere", description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="*", choices=[*RUNS, []], help="every run the processor can do, if none is named")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of order and examples"
    )
    options = parser.parse_args(given)
    end_cleanly()
    here = flags()
    possible = [name for name, run in RUNS.items() if set(run.needs) <= here]
    for name in RUNS.keys() - set(possible):
        print(f"{name}: left out, this processor lacks {', '.join(sorted(set(RUNS[name].needs) - here))}.")
    ended = [run_tests(name, options.seed, tests) for name in (options.runs or possible) if name in possible]
    if not ended:
        print("No run is possible here.")
        return 1
    columns = [key for key in ended[0] if key != "repeat"]
    widths = [max(len(key), *(len(row[key]) for row in ended)) for key in columns]
    print()
    for row in [dict(zip(columns, columns, strict=True)), *ended]:
        print("  ".join(row[key].ljust(width) for key, width in zip(columns, widths, strict=True)).rstrip())
    broken = [row for row in ended if row["result"].startswith("BROKEN")]
    for row in broken:
        print(f"\n{row['run']} again: {row['repeat']}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
