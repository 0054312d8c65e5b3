"""Every part of the torture, each in a process of its own, so that no part meets the memory, threads, signals or
warnings that other tests left behind: a leak is the part's, and what passes alone passes among others.

    pytest tests/torture                     # at counts that take seconds, as `make test` does
    pytest tests/torture --full              # at full count, as `make torture` does: what is measured is kept
    pytest tests/torture --full -k load      # one part; what was measured of the others stays
"""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from studies.measure import describe
from studies.store import read, results_of, write
from torture import PARTS, threads
from torture.harness import Broken

ROOT = Path(__file__).parents[2]
CHILD = "import sys; sys.path.insert(0, 'tests'); from torture.harness import measure; measure(*sys.argv[1:])"
UNKIND = {"DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT": "100ms"}
"""A cluster of Dask gives up workers that are lost for so long, which a part that kills them must forbid."""


@pytest.mark.parametrize("name", PARTS)
def test_part(name, request):
    full = request.config.getoption("--full")
    warned = request.config.getoption("pythonwarnings") or []  # pytest -W default, where releases are old
    call = [sys.executable, "-c", CHILD, name, "FULL" if full else "QUICK", *warned[:1]]
    done = subprocess.run(call, cwd=ROOT, env=os.environ | UNKIND, capture_output=True, text=True)
    kept = done.returncode == 0
    found = json.loads(done.stdout.splitlines()[-1]) if kept else {"broken": True, "exit_code": done.returncode}
    if full:
        keep(name, found)
    assert kept, f"{PARTS[name]}: not so (exit code {done.returncode})\n{done.stderr}"
    assert set(found) > {"seconds", "peak_megabytes"}


def keep(name, found):
    """Put what one part found at full count into torture.json."""
    path = results_of("promises", "torture")
    results = {"parts": {}} | read(path)
    results |= {"command": "make torture", "machine": describe()}
    results["parts"][name] = {"promise": PARTS[name]} | found | {"commit": results["machine"]["commit"]}
    results["parts"] = {part: results["parts"][part] for part in PARTS if part in results["parts"]}
    write(path, results)


def test_every_part_is_listed_with_both_counts():
    files = {path.stem for path in Path(__file__).parent.glob("*.py")}
    assert files - {"__init__", "harness", Path(__file__).stem} == set(PARTS)
    for name in PARTS:
        part = importlib.import_module(f"torture.{name}")
        assert set(part.QUICK) == set(part.FULL)


def test_a_part_that_looks_elsewhere_is_told():
    with pytest.raises(Broken, match=r"no line of the files of Fitting\._updated, PILAEClassifier"):
        threads.covers(["elsewhere.py:1"], threads.WRITING)
