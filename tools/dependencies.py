"""What pyproject.toml declares: every direct dependency, where it is asked for and its lower bound.

python -m tools.dependencies > constraints.txt    # every one of them at its lower bound, for `make test-lowest`
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]

USERS_EXTRAS = ("torch", "dask", "parquet", "table", "images", "save", "report", "onnx")
"""What people install; the others (dev, docs) are for those who work on pilae."""


@dataclass
class Dependency:
    """One package, however often it is asked for."""

    name: str
    bound: str
    """Its lower bound, or the only version where it is pinned."""
    asked_by: list[str] = field(default_factory=list)
    """"core", names of extras, "build"."""


def normalised(name: str) -> str:
    """The name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> dict[str, Dependency]:
    """Every direct dependency by its normalised name. All places must ask for the same version."""
    tree = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = tree["project"]
    places = {
        "core": project["dependencies"],
        **project["optional-dependencies"],
        "build": tree["build-system"]["requires"],
    }
    found: dict[str, Dependency] = {}
    for place, requirements in places.items():
        for text in requirements:
            match = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?(?:>=|==)([\d.]+)", text)
            if match is None:
                raise ValueError(f"{text!r} in pyproject.toml is not name>=version or name==version.")
            name = normalised(match[1])
            one = found.setdefault(name, Dependency(match[1], match[2]))
            if one.bound != match[2]:
                raise ValueError(f"pyproject.toml asks for {name} {one.bound} and {match[2]}: one of them is untested.")
            one.asked_by.append(place)
    return found


def lowest() -> list[str]:
    """Requirements that choose every dependency at its lower bound, torch aside (see pyproject.toml)."""
    return [f"{name}=={one.bound}" for name, one in sorted(declared().items()) if name != "torch"]


if __name__ == "__main__":
    print("\n".join(lowest()))
