"""What a fit costs where it does not have the machine to itself.

    PILAE_DATA=folder python -m studies.speed.sharing [--quick] [--source folder]

Every case is timed alone, beside as many busy processes as there are processors, with a quota of one processor (a
control group where one may be made, otherwise affinity to one processor), and eight times side by side by joblib
against one after another. All figures are ratios of medians within one run: the conditions take turns, each in a
process of its own that has fitted once before. Without PILAE_DATA made-up rows of the same shape are used. --source
measures the code in another folder, as "before". Writes results/sharing.json; --quick only prints.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sklearn.datasets import load_iris

from studies.data import first_rows
from studies.measure import busy, describe, end_cleanly
from studies.speed.against import with_head
from studies.store import read, results_of, write

SIDE_BY_SIDE = 8
CONDITIONS = ("alone", "busy", "quota")
ROOT = Path("/sys/fs/cgroup")


def paper(rows: int) -> Callable[[], object]:
    from pilae import PILAEClassifier

    X, y = first_rows("mnist", rows, 784, 10)
    return lambda: with_head(PILAEClassifier, 4000, width=[705, 634], random_state=0).fit(X, y)


def iris() -> Callable[[], object]:
    from pilae import PILAEClassifier

    X, y = load_iris(return_X_y=True)
    return lambda: PILAEClassifier(random_state=0).fit(X, y)


def segment() -> Callable[[], object]:
    from pilae import PILAEClassifier

    X, y = first_rows("segment", 2310, 19, 7)
    return lambda: PILAEClassifier(random_state=0).fit(X, y)


def one_row() -> Callable[[], object]:
    """Predictions of one row, a hundred of them, by the paper's network: its products are large enough for threads."""
    from pilae import PILAEClassifier

    X, y = first_rows("mnist", 5000, 784, 10)
    model = with_head(PILAEClassifier, 4000, width=[705, 634], ridge=1e-3, random_state=0).fit(X, y)
    return lambda: [model.predict(X[:1]) for _ in range(100)]


CASES: dict[str, Callable[[], Callable[[], object]]] = {
    "iris": iris,
    "segment": segment,
    "paper's network": lambda: paper(60_000),
    "paper's network, 15,000 rows": lambda: paper(15_000),
    "paper's network, 4,000 rows": lambda: paper(4_000),
    "one row": one_row,
}
QUICK = ("iris", "segment", "one row")
ALONE = ("iris", "segment", "paper's network", "one row")
JOBLIB = ("iris", "segment", "paper's network, 4,000 rows")
BACKENDS = ("loky", "threading")


def timed(f: Callable[[], object], repeats: int) -> list[tuple[float, float]]:
    """(wall, processor) seconds of each call."""
    found = []
    for _ in range(repeats):
        wall, own = time.perf_counter(), time.process_time()
        f()
        found.append((time.perf_counter() - wall, time.process_time() - own))
    return found


def fit_in_worker(name: str) -> int:
    CASES[name]()()
    return os.getpid()


def by_joblib(name: str, backend: str, repeats: int) -> list[tuple[float, float]]:
    """(side by side, one after another) seconds of eight fits."""
    import joblib

    parallel, jobs = joblib.Parallel(n_jobs=SIDE_BY_SIDE, backend=backend), [joblib.delayed(fit_in_worker)(name)] * 8
    parallel(jobs)  # workers start and import
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        parallel(jobs)
        middle = time.perf_counter()
        for _ in range(SIDE_BY_SIDE):
            fit_in_worker(name)
        found.append((middle - start, time.perf_counter() - middle))
    return found


def child(name: str, condition: str, repeats: int) -> None:
    """What a process of its own prints."""
    if condition in BACKENDS:
        print(json.dumps(by_joblib(name, condition, repeats)))
        return
    f = CASES[name]()
    f()
    print(json.dumps(timed(f, repeats)))


def measure(name: str, condition: str, repeats: int, source: str | None) -> list[tuple[float, float]]:
    environment = dict(os.environ)
    if source is not None:
        environment["PYTHONPATH"] = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", __spec__.name, "--child", name, condition, str(repeats)]
    with beside(condition) as enter:
        out = subprocess.run(command, capture_output=True, text=True, env=environment, preexec_fn=enter)
    if out.returncode:
        sys.exit(out.stderr.strip().splitlines()[-1])
    return json.loads(out.stdout.strip().splitlines()[-1])


@contextlib.contextmanager
def beside(condition: str) -> Iterator[Callable[[], object] | None]:
    """The condition of a child, and what it calls first."""
    if condition == "busy":
        with busy(len(os.sched_getaffinity(0))):
            yield None
    elif condition == "quota":
        with one_processor() as (enter, _):
            yield enter
    else:
        yield None


@contextlib.contextmanager
def one_processor() -> Iterator[tuple[Callable[[], object], str]]:
    """What a child calls to have one processor's worth of time, and what that is."""
    for groups in own_groups():
        try:
            group = Path(tempfile.mkdtemp(prefix="pilae-sharing-", dir=groups))
        except OSError:
            continue
        enter = partial((group / "cgroup.procs").write_text, "0")  # whoever writes it
        try:
            if (group / "cpu.max").exists():
                (group / "cpu.max").write_text("100000 100000")
            else:
                (group / "cpu.cfs_quota_us").write_text((group / "cpu.cfs_period_us").read_text())
        except OSError:
            group.rmdir()
            continue
        try:
            yield enter, "a control group's quota"
        finally:
            group.rmdir()
        return
    yield partial(os.sched_setaffinity, 0, {min(os.sched_getaffinity(0))}), "affinity"


def own_groups() -> Iterator[Path]:
    """Where a control group could be made: below the one this process is in, and below the root."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if not names or "cpu" in names.split(","):
            yield ROOT / names / path.lstrip("/")
            yield ROOT / names


def ratios(name: str, rounds: int, repeats: int, source: str | None, *, joblib: bool) -> dict:
    found: dict = {}
    times: dict[str, list] = {condition: [] for condition in CONDITIONS}
    if not joblib:
        for _ in range(rounds):
            for condition in CONDITIONS:
                times[condition] += measure(name, condition, repeats, source)
        median = {condition: statistics.median(wall for wall, _ in times[condition]) for condition in CONDITIONS}
        found["alone, seconds"] = median["alone"]
        found["alone, processor seconds"] = statistics.median(own for _, own in times["alone"])
        found["beside busy processes"] = median["busy"] / median["alone"]
        found["with a quota of one processor"] = median["quota"] / median["alone"]
        return found
    for backend in BACKENDS:
        pairs = [pair for _ in range(rounds) for pair in measure(name, backend, repeats, source)]
        found[f"eight by joblib, {backend}"] = statistics.median(side / after for side, after in pairs)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--source")
    parser.add_argument("--case", action="append")
    parser.add_argument("--child", nargs=3)
    given = parser.parse_args()
    if given.child:
        child(given.child[0], given.child[1], int(given.child[2]))
        return
    end_cleanly()
    with one_processor() as (_, quota):
        pass
    key = "cases" if given.source is None else "before"
    path = results_of("speed", "sharing")
    results = read(path)
    results |= {"command": "python -m studies.speed.sharing", "machine": describe(), "quota": quota}
    results.setdefault(key, {})
    for name in given.case or dict.fromkeys([*(QUICK if given.quick else ALONE), *([] if given.quick else JOBLIB)]):
        large = "paper" in name
        rounds, repeats = (1 if given.quick or large else 3), (1 if large else 3)
        found: dict = {}
        if name in ALONE or given.case:
            found |= ratios(name, rounds, repeats, given.source, joblib=False)
        if name in JOBLIB:
            found |= ratios(name, 1, 1 if given.quick else 2, given.source, joblib=True)  # of eight fits each
        results[key][name] = found
        print(name, {label: float(f"{value:.3g}") for label, value in found.items()}, flush=True)
        if not given.quick:
            write(path, results)


if __name__ == "__main__":
    main()
