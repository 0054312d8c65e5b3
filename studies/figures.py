"""All figures of the project by one command, and what they were measured with: studies/manifest.json.

    python -m studies.figures                # every part whose code has changed since, one after another
    python -m studies.figures sharing ...    # these
    python -m studies.figures --note [part]  # write down what a part's own command has measured
    python -m studies.figures --check        # exit status 1 where a figure is of older code: `make release-check`

A part is a command and the files that it writes. A run can be interrupted: what is finished stays, and parts that are
cut short go on from there where their command can. The manifest says of each part at which commits, on which machine
and in how many seconds it was measured, and has a hash of every file: `make test` fails where a file is not the one
that was measured, and the tables of all pages are made from these files. Nothing is measured of code that is not
committed. Parts that need a GPU are left out where there is none, and parts that need data in PILAE_DATA without it.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from studies.store import read, write

ROOT = Path(__file__).parents[1]
MANIFEST = Path(__file__).parent / "manifest.json"

ENGINE = ("_arrays", "_base", "_data", "_engine", "_network", "_search", "_estimators")
TABLES = (*ENGINE, "_tables", "cli")
ALL = (*TABLES, "_pictures", "datasets", "export", "plot", "report", "save")


class Part(NamedTuple):
    """A study that can be measured by itself."""

    command: tuple[str, ...]
    """Of make, or a module of Python."""
    files: tuple[str, ...]
    """What it writes, below studies/; may be patterns."""
    code: tuple[str, ...] = ENGINE
    """Packages of pilae that its figures depend on."""
    gpu: bool = False
    data: bool = False
    """Whether it needs PILAE_DATA."""
    others: str = ""
    """Where in its files the figures of other libraries are, on which changes of pilae have no bearing: a pattern of
    their keys, joined by slashes."""

    @property
    def found(self) -> list[Path]:
        """The files that are there."""
        return sorted(path for name in self.files for path in (ROOT / "studies").glob(name))


PARTS = {
    "paper": Part(("make", "tables"), ("paper/results/full/[!g]*.json",), data=True),
    "paper, quick": Part(("make", "tables", "QUICK=1"), ("paper/results/quick/*.json",), data=True),
    "paper, GPU": Part(("studies.paper.gpu",), ("paper/results/full/gpu.json",), gpu=True, data=True),
    "products": Part(("studies.speed.products", "--continue"), ("speed/results/products.json",)),
    "paper's network": Part(
        ("studies.speed.paper_network", "--continue"), ("speed/results/paper_network.json",), data=True
    ),
    "profiles": Part(("studies.speed.profiles", "--continue"), ("speed/results/profiles.json",), data=True),
    "sharing": Part(("studies.speed.sharing",), ("speed/results/sharing.json",), data=True),
    "groups": Part(("studies.speed.groups", "--continue"), ("speed/results/groups.json",)),
    "command line": Part(("studies.speed.command_line", "--continue"), ("speed/results/command_line.json",), TABLES),
    "scale": Part(("make", "bench-scale"), ("speed/results/scale.json",)),
    "against": Part(("studies.speed.against",), ("speed/results/against.json",), data=True),
    "peers, speed": Part(("make", "bench-peers"), ("speed/results/peers.json",), others=r"methods/(?!pilae)"),
    "speed, GPU": Part(("studies.speed.gpu",), ("speed/results/gpu.json",), gpu=True, data=True),
    "tables": Part(("studies.tables.tabular",), ("tables/results/tabular.json",), data=True),
    "seeds": Part(("studies.tables.seeds",), ("tables/results/seeds.json",), data=True),
    "beyond": Part(("studies.tables.beyond",), ("tables/results/beyond.json",)),
    "peers, tables": Part(("make", "study-peers"), ("tables/results/peers.json",), others=r".*/models/(?!pilae/)"),
    "mixed tables": Part(
        ("make", "study-mixed"), ("tables/results/mixed.json",), TABLES, data=True, others=r".*/folds/(?!pilae/)"
    ),
    "patches": Part(("studies.images.patches", "--continue"), ("images/results/patches.json",), data=True),
    "angles": Part(("studies.images.angles", "--continue"), ("images/results/angles.json",), data=True),
    "drift": Part(("studies.continual.drift", "--continue"), ("continual/results/drift.json",)),
    "tasks": Part(("studies.continual.tasks", "--continue"), ("continual/results/tasks.json",)),
    "torture": Part(("make", "torture"), ("promises/results/torture.json",), ALL),
}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"among {'; '.join(PARTS)}")
    parser.add_argument("--check", action="store_true", help="say which figures are of older code")
    parser.add_argument("--note", action="store_true", help="write down what is measured already")
    given = parser.parse_args(words)
    if unknown := [name for name in given.parts if name not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}: choose among {'; '.join(PARTS)}")
    names = given.parts or list(PARTS)
    if given.check:
        return _check(names)
    if given.note:
        for name in names:
            note(name)
        return 0
    return _measure([name for name in names if given.parts or stale(name)])


def _check(names: list[str]) -> int:
    old = {name: why for name in names if (why := stale(name))}
    for name, why in old.items():
        print(f"{name}: {why}")
    print(f"{len(names) - len(old)} of {len(names)} parts are of the code that is here")
    return 1 if old else 0


def _measure(names: list[str]) -> int:
    if _git("status", "--porcelain", "--", "src", "studies/*.py"):
        sys.exit("There are changes in src or studies that are not committed: a figure must name the code it is of.")
    failed = []
    for k, name in enumerate(names, 1):
        part = PARTS[name]
        if lacking := _lacks(part):
            print(f"{name}: left out, {lacking}", flush=True)
            continue
        print(f"{name} ({k} of {len(names)}): {' '.join(part.command)}", flush=True)
        start = time.perf_counter()
        call = list(part.command) if part.command[0] == "make" else [sys.executable, "-m", *part.command]
        if subprocess.run(call, cwd=ROOT).returncode:
            failed.append(name)
            print(f"{name}: failed; the others go on", flush=True)
            continue
        note(name, round(time.perf_counter() - start, 1))
    return 1 if failed else 0


def _lacks(part: Part) -> str:
    """What this machine does not have."""
    if part.gpu and subprocess.run(["sh", "-c", "command -v nvidia-smi"], capture_output=True).returncode:
        return "there is no GPU here"
    return "PILAE_DATA is not set" if part.data and not os.environ.get("PILAE_DATA") else ""


def note(name: str, seconds: float | None = None) -> None:
    """Take what a part has measured into the manifest."""
    part, manifest = PARTS[name], {"parts": {}} | read(MANIFEST)
    if not part.found:
        return
    ours, others = commits_in(part)
    entry: dict = {"command": " ".join(part.command), "commits": ours}
    entry |= {"commits of others": others} if others else {}
    machines = [machine for path in part.found for machine in machines_in(read(path))]
    entry |= {"machines": [machine for k, machine in enumerate(machines) if machine not in machines[:k]]}
    entry |= {} if seconds is None else {"seconds": seconds}
    entry["files"] = {str(path.relative_to(ROOT / "studies")): hash_of(path) for path in part.found}
    manifest["parts"][name] = entry
    manifest["parts"] = {key: manifest["parts"][key] for key in PARTS if key in manifest["parts"]}
    write(MANIFEST, manifest)


def commits_in(part: Part) -> tuple[list[str], list[str]]:
    """All that the figures of a part were measured at: those of pilae, and those of other libraries."""
    found = {pair for path in part.found for pair in _commits(read(path), "")}
    others = {pair for pair in found if part.others and re.match(part.others, pair[0])}
    return tuple(sorted({commit for _, commit in pairs}) for pairs in (found - others, others))  # type: ignore[return-value]


def _commits(results: object, place: str) -> Iterator[tuple[str, str]]:
    """Every commit that is named, and where: the keys above it, joined by slashes."""
    pairs = results.items() if isinstance(results, dict) else enumerate(results) if isinstance(results, list) else ()
    for key, value in pairs:
        if key == "commit":
            yield place, value
        else:
            yield from _commits(value, f"{place}{key}/")


def machines_in(results: dict) -> list[dict]:
    """The machines that a file names, without their commits."""
    found = [value for key, value in results.items() if key.endswith("machine") and isinstance(value, dict)]
    return [{key: value for key, value in machine.items() if key != "commit"} for machine in found]


def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def altered(name: str) -> list[str]:
    """Files of a part that are not those that were written down."""
    known = read(MANIFEST).get("parts", {}).get(name, {}).get("files", {})
    now = {str(path.relative_to(ROOT / "studies")): hash_of(path) for path in PARTS[name].found}
    return sorted(file for file in known.keys() | now.keys() if known.get(file) != now.get(file))


def stale(name: str) -> str:
    """Why a part should be measured again; nothing where it is of the code that is here."""
    part, entry = PARTS[name], read(MANIFEST).get("parts", {}).get(name)
    if entry is None:
        return "not measured yet"
    if files := altered(name):
        return f"{', '.join(files)} is not what was measured: python -m studies.figures --note {name!r}"
    trees = [f"src/pilae/{package}" for package in part.code]
    trees += [f"studies/{module.split('.', 1)[1].replace('.', '/')}.py" for module in part.command[:1] if "." in module]
    changed, now = set[str](), _git("rev-parse", "HEAD").strip()
    for commit in entry["commits"]:
        if not _git("cat-file", "-t", commit):
            return f"measured at {commit}, which this history does not have"
        changed |= {tree.removeprefix("src/pilae/") for tree in trees if _differs(commit, now, tree)}
    return (
        f"measured at {', '.join(entry['commits'])}; since then changed: {', '.join(sorted(changed))}"
        if changed
        else ""
    )


@cache
def _differs(then: str, now: str, tree: str) -> bool:
    """Whether a folder or a file computes something else at one commit than at another."""
    files = _git("diff", "--name-only", "--no-renames", then, now, "--", tree).splitlines()
    return any(_code(then, file) != _code(now, file) for file in files)


def _code(commit: str, file: str) -> str:
    """A file as it was, without comments and docstrings: no figure is older because a sentence is better."""
    text = _git("show", f"{commit}:{file}")
    if not file.endswith(".py"):
        return text
    module = ast.parse(text)
    for node in ast.walk(module):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]
    return ast.dump(module)


def _is_text(statement: ast.stmt) -> bool:
    """A docstring, of whatever it stands in or below."""
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
