"""Supply chain: wheel and sdist are the same to the byte whoever builds them and work where they are installed, every
dependency is at least at its declared lower bound and under a licence that binds nobody, and none has a known
vulnerability where a vulnerability service can be asked.

At quick count (no package is built, `.ci/run` does that; nothing is fetched) it looks at what is installed.
"""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tools import licences
from tools.dependencies import ROOT, declared
from torture.harness import Broken

QUICK = {"builds": 0, "audits": 0}
FULL = {"builds": 1, "audits": 1}

AUDITED = {0: "none known", 1: "found", 3: "service not reachable"}
"""What the exit status of `tools.audit` means."""


def run(builds: int, audits: int) -> dict[str, Any]:
    found: dict[str, Any] = {"dependencies": len(declared()), "installed": _bounds(), "licences": _licences()}
    for _ in range(builds):
        found |= _packages()
    for _ in range(audits):
        found |= _audit()
    return found


def _bounds() -> int:
    """How many dependencies are installed here, none below its bound."""
    count = 0
    for name, one in declared().items():
        try:
            here = version(name)
        except PackageNotFoundError:
            continue
        if _numbers(here) < _numbers(one.bound):
            raise Broken(f"{name} {here} is installed, below the bound {one.bound} of pyproject.toml")
        count += 1
    return count


def _numbers(text: str) -> list[int]:
    """The release of a version: [2, 13] of 2.13.0+cpu."""
    numbers = [int(part) for part in re.match(r"[\d.]*\d", text)[0].split(".")]  # type: ignore[index]
    while numbers[-1:] == [0]:
        numbers.pop()
    return numbers


def _licences() -> dict[str, int]:
    """How many dependencies are under each family of licences."""
    count: dict[str, int] = {}
    for name, (_, _, stated) in licences.table().items():
        try:
            family = " and ".join(sorted(licences.families(stated)))
        except ValueError as error:
            raise Broken(f"{name}: {error}") from error
        count[family] = count.get(family, 0) + 1
    return dict(sorted(count.items()))


def _packages() -> dict[str, Any]:
    done = _make("package")
    hashes = re.findall(r"^([0-9a-f]{64})  dist/(\S+)$", done.stdout, flags=re.M)
    if done.returncode or len(hashes) != 2:
        raise Broken(f"make package ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return {"reproducible": {name: digest for digest, name in hashes}}


def _audit() -> dict[str, Any]:
    _make(".venv-audit/done")
    call = [".venv-audit/bin/python", "-m", "tools.audit"]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True)
    if done.returncode not in AUDITED or done.returncode == 1:
        raise Broken(f"make audit: {done.stdout}{done.stderr[-2000:]}")
    return {"vulnerabilities": AUDITED[done.returncode], "packages_audited": 0 if done.returncode else _audited(done)}


def _audited(done: subprocess.CompletedProcess) -> int:
    return sum(int(number) for number in re.findall(r"(\d+) packages audited", done.stdout))


def _make(target: str) -> subprocess.CompletedProcess:
    return subprocess.run(["make", target], cwd=ROOT, capture_output=True, text=True)
