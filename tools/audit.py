"""Known vulnerabilities of what pilae installs, newest and at its lower bounds, from PyPI, else OSV: `make audit`.

pip-audit says "No known vulnerabilities found" also where the service knew nothing of the packages it was asked about.
So a package with known ones is asked about too, and the answer counts only if those are in it.

Exit status 0: every package was asked about, none has any. 1: some have. 3: no service answered, nothing is known.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.dependencies import ROOT, USERS_EXTRAS, lowest

CANARY = "jinja2==3.1.2"
"""CVE-2024-22195 and others."""


def newest() -> list[str]:
    """Everything that pip would install today for the core and the users' extras, torch's own dependencies aside."""
    extras = ",".join(extra for extra in USERS_EXTRAS if extra != "torch")
    call = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    done = subprocess.run([*call, f"{ROOT}[{extras}]"], stdout=subprocess.PIPE, text=True, check=True)
    found = [one["metadata"] for one in json.loads(done.stdout)["install"]]
    return [f"{one['name']}=={one['version']}" for one in found if one["name"] != "pilae"]


def ask(service: str, requirements: list[str]) -> dict[str, list[str]] | None:
    """name==version -> names of its known vulnerabilities; None where the service does not say."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "asked.txt"
        file.write_text("\n".join(requirements) + "\n")
        call = [sys.executable, "-m", "pip_audit", "--progress-spinner", "off", "--format", "json"]
        call += ["--vulnerability-service", service, "--no-deps", "--disable-pip", "--requirement", str(file)]
        done = subprocess.run(call, capture_output=True, text=True)
    if not done.stdout.startswith("{"):  # it could not reach the service, and says so at length
        return None
    answers = json.loads(done.stdout)["dependencies"]
    return {f"{one['name']}=={one['version']}": [v["id"] for v in one["vulns"]] for one in answers if "vulns" in one}


def known(requirements: list[str]) -> dict[str, list[str]] | None:
    """What the first service says that is there, knows the canary and was not silent about a package."""
    for service in ("pypi", "osv"):
        found = ask(service, [CANARY])
        if found is None or not any(found.values()):
            continue
        found = ask(service, requirements)
        if found is not None and len(found) == len(requirements):
            return found
    return None


def main() -> int:
    broken = 0
    for what, requirements in (("newest", newest()), ("at the lower bounds", lowest())):
        found = known(requirements)
        if found is None:
            print(f"{what}: {len(requirements)} packages NOT audited, no vulnerability service could be reached.")
            return 3
        bad = {name: names for name, names in found.items() if names}
        print(f"{what}: {len(found)} packages audited, {len(bad)} with known vulnerabilities.")
        for name, names in bad.items():
            print(f"  {name}: {', '.join(names)}")
        broken |= bool(bad)
    return broken


if __name__ == "__main__":
    sys.exit(main())
