"""Results as JSON: figures with the machine, the commit and the command that made them.

Two ways to fill them: `run_cases`, each case in a process of its own, whose peak memory is its own; and `Run`, many
cells over hours, interrupted and continued, compared with what is in the repository.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from studies.measure import describe, seconds_of

Cells = Mapping[str, Callable[[], dict]]
"""What is measured, by name."""

TOLERANCE = {"pilae": 1e-3, "bp": 1e-2}
"""How far accuracies of the same commands on another machine may lie from those in the repository: sums in another
order move an output that is nearly a tie."""

BACK_PROPAGATION = ("bp", "greedy", "end_to_end", "bp test accuracy")
"""Keys under which results are those of back-propagation."""


def results_of(study: str, name: str) -> Path:
    """The file of a module's results."""
    return Path(__file__).parent / study / "results" / f"{name}.json"


def read(path: Path) -> dict:
    return json.loads(path.read_text()) if path.exists() else {}


def write(path: Path, results: dict) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_suffix(".part")
    whole.write_text(json.dumps(results, indent=2) + "\n")
    whole.replace(path)


def run_cases(
    module: str, cases: Cells, *, default: Iterable[str] = (), key: str = "cases", machine: str = "machine"
) -> None:
    """Measure cases one after another, each in a process of its own, into results[key] of the module's file.

    Those named on the command line, or `default`, or all; what was measured of others stays, and so does what was
    measured of a case that fails, which ends the run with exit status 1. Options ("--...") are for the module: the
    processes of the cases get them too. With --continue those that a run with --continue has measured at this
    commit with the same options stay, and with --jobs=2 two are measured at a time (for what counts processor time).
    With --quick all goes into a file of its own, so that nothing takes the place of what hours have measured.
    """
    words = [word for word in sys.argv[1:] if word.startswith("--")]
    options = [word for word in words if word != "--continue" and not word.startswith("--jobs=")]
    names = [word for word in sys.argv[1:] if not word.startswith("--")]
    if unknown := [name for name in names if name not in cases]:
        sys.exit(f"There is no case {unknown[0]!r}: choose among {'; '.join(cases)}.")
    if options[-1:] == ["--one"]:  # the process of one case
        print(json.dumps(cases[names[0]]()))
        return
    study, name = module.split(".")[1:]
    path = results_of(study, f"{name}-quick" if "--quick" in options else name)
    results = read(path)
    command = f"python -m {module}" + (" --quick" if "--quick" in options else "")
    results |= {"command": command, machine: describe()}
    found = {name: case for name, case in results.get(key, {}).items() if name in cases}
    made, left = {"commit": results[machine]["commit"]}, list(names or default or cases)
    if "--continue" in words:
        made |= {"options": options}
        left = [name for name in left if not made.items() <= found.get(name, {}).items()]
    jobs = next((int(word.removeprefix("--jobs=")) for word in words if word.startswith("--jobs=")), 1)
    failed = False
    for name, out in _outputs(module, left, options, jobs):
        if out.returncode:
            failed = True
            print(f"{name} failed: {out.stderr.strip().splitlines()[-1]}", file=sys.stderr, flush=True)
            continue
        found[name] = json.loads(out.stdout.strip().splitlines()[-1]) | made
        print(name, found[name], flush=True)
        write(path, results | {key: {name: found[name] for name in cases if name in found}})
    if failed:
        sys.exit(1)


def _outputs(
    module: str, names: list[str], options: list[str], jobs: int
) -> Iterator[tuple[str, subprocess.CompletedProcess]]:
    """What the process of each case has said, as soon as it has ended; so many at a time."""

    def run(name: str) -> tuple[str, subprocess.CompletedProcess]:
        call = [sys.executable, "-m", module, name, *options, "--one"]
        return name, subprocess.run(call, capture_output=True, text=True)

    with ThreadPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(run, name) for name in names]):
            yield done.result()


@dataclass
class Run:
    """Cells measured in this process, part by part, so that a run that was interrupted goes on from there."""

    results: Path
    """The folder of the repository."""
    unfinished: Path
    """Where a run that is not finished keeps what it has."""
    command: str
    machine: dict = field(default_factory=dict)
    """What to say of the machine beside what is always said."""

    def measure(self, part: str, cells: Cells, only: str | None = None) -> None:
        """Measure all cells of a part, or one.

        Each is written down as unfinished when it is done (until `forget_unfinished`); a part that is finished is
        compared with the results in the repository and takes their place. A cell whose data is not here is written
        down as missing, unless the repository has numbers for it: they stay.
        """
        path = (self.results if only else self.unfinished) / f"{part}.json"
        found = {"cells": {}} | read(path)
        found |= {"command": self.command, "machine": describe() | self.machine}
        left = [only] if only else [name for name in cells if "missing" in found["cells"].get(name, {"missing": ""})]
        for k, name in enumerate(left, 1):
            print(f"{part}: {name} ({k} of {len(left)}) ...", end=" ", file=sys.stderr, flush=True)
            try:
                seconds, result = seconds_of(cells[name])
            except FileNotFoundError as error:
                where = os.environ.get("PILAE_DATA") or "PILAE_DATA"  # a folder on this machine says nothing to others
                seconds, result = 0.0, {"missing": str(error).replace(where, "PILAE_DATA")}
            whole = {**result, "commit": found["machine"]["commit"], "took": round(seconds, 1)}
            found["cells"][name] = json.loads(json.dumps(whole))  # keys are strings from now on, as when read again
            write(path, found)
            print("not available" if "missing" in result else f"{seconds:.0f} s", file=sys.stderr, flush=True)
        if only is None:
            self._take_over(part, found, list(cells))

    def _take_over(self, part: str, found: dict, names: list[str]) -> None:
        """A finished part becomes the repository's."""
        path = self.results / f"{part}.json"
        before, now = read(path).get("cells", {}), found["cells"]
        print(compared(part, before, now), file=sys.stderr)
        kept = [name for name in names if "missing" in now[name] and "missing" not in before.get(name, {"missing": ""})]
        if kept:
            print(f"{part}: kept from the repository, as their data is not here: {', '.join(kept)}", file=sys.stderr)
        write(path, found | {"cells": {name: (before if name in kept else now)[name] for name in names}})

    def forget_unfinished(self) -> None:
        """The run is over: the next one begins anew."""
        for path in self.unfinished.glob("*.json"):
            path.unlink()


def compared(part: str, before: dict, now: dict) -> str:
    """How the accuracies of a new run lie to those in the repository."""
    pairs = [pair for name in now if name in before for pair in _accuracies(name, before[name], now[name])]
    far = [
        f"{part}: {name}: {new:.4f}, in the repository {old:.4f}"
        for name, old, new in pairs
        if abs(new - old) > TOLERANCE["bp" if "/bp/" in name else "pilae"]
    ]
    words = f"within {100 * TOLERANCE['pilae']:g} points (back-propagation {100 * TOLERANCE['bp']:g})"
    return "\n".join(
        [*far, f"{part}: {len(pairs) - len(far)} of {len(pairs)} accuracies as in the repository, {words}"]
    )


def _accuracies(name: str, before: object, now: object) -> Iterator[tuple[str, float, float]]:
    """(place, before, now) of every accuracy in two nested results."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key, value in now.items():
            if key not in before:
                continue
            inner = f"{name}/bp/{key}" if key in BACK_PROPAGATION else f"{name}/{key}"
            if (
                key.endswith("accuracy")
                and not key.startswith("seconds")
                and isinstance(value, float)
                and isinstance(before[key], float)
            ):
                yield inner, before[key], value
            else:
                yield from _accuracies(inner, before[key], value)
    elif isinstance(before, list) and isinstance(now, list):
        for k, (old, new) in enumerate(zip(before, now, strict=False)):
            yield from _accuracies(f"{name}/{k}", old, new)


def checksum(*arrays: np.ndarray) -> str:
    """Of the arrays a cell was measured on, as they were given to the network."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
