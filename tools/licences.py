"""The licence of every direct dependency, from the metadata of what is installed, into docs/licences.md.

python -m tools.licences    # needs every extra installed: `make licences`
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from tools.dependencies import ROOT, declared

PAGE = ROOT / "docs" / "licences.md"

FAMILIES = {
    "BSD": r"\bBSD\b|bsd-[23]-clause",
    "MIT": r"\bMIT\b",
    "Apache-2.0": r"apache",
    "MPL-2.0": r"\bMPL\b|mozilla",
    "PSF": r"\bPSF\b|python software foundation|python-2\.0|matplotlib",
}
"""What a dependency may be under, by the words that name it. No licence that would bind what pilae's users write (GPL,
AGPL) is here; MPL binds changes to its own files alone."""

HEAD = """# Licences of what pilae depends on

pilae itself is under BSD-3-Clause. Every package it asks for directly, what asks for it (`core` is always installed,
`build` makes the package, `dev` and `docs` are for those who work on it, the others are extras), and the licence that
its own metadata states at the version named. Written by `make licences` and compared by a test; none is under GPL or
AGPL.

| package | asked for by | version | licence |
| --- | --- | --- | --- |
"""


def licence(name: str) -> tuple[str, str] | None:
    """(version, licence as its metadata states it) of an installed package; None where it is not installed."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return None
    return found.version.split("+")[0], _stated(found)


def _stated(found: Distribution) -> str:
    """The expression, else the classifier, else the first line of the licence itself."""
    metadata = found.metadata
    kinds = [line.split(" :: ")[2] for line in metadata.get_all("Classifier") or [] if line.count(" :: ") == 2]
    kinds = [kind for kind in kinds if kind.endswith("License")]
    files = (file for file in found.files or [] if ".dist-info" in str(file) and file.name.startswith("LICENSE"))
    stated = metadata.get("License-Expression") or ", ".join(kinds) or metadata.get("License")
    text = stated or next(files).read_text()
    return text.strip().splitlines()[0].strip()


def families(text: str) -> set[str]:
    """The families a licence belongs to; an error for one that is in none, or that is strong copyleft."""
    found = {name for name, words in FAMILIES.items() if re.search(words, text, flags=re.I)}
    if not found or re.search(r"\bA?GPL|affero|general public", text, flags=re.I):
        raise ValueError(f"The licence {text!r} is none that pilae may depend on without a decision.")
    return found


def table() -> dict[str, tuple[str, str, str]]:
    """What the page says: name -> (asked for by, version, licence)."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return {name: (asked, version, stated) for name, asked, version, stated in rows[2:]}


def main() -> int:
    lines = []
    for name, one in sorted(declared().items()):
        found = licence(name)
        if found is None:
            print(f"{name} is not installed: make licences installs everything.", file=sys.stderr)
            return 1
        families(found[1])
        lines.append(f"| {name} | {', '.join(one.asked_by)} | {found[0]} | {found[1]} |")
    PAGE.write_text(HEAD + "\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
