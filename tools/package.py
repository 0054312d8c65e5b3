"""Wheel and sdist as people get them: `make package`.

Both are built twice, in folders, moments, time zones and file permissions that differ, and must not differ by a byte.
Then each is installed into a clean environment with nothing but pilae's core dependencies, where a model is fitted,
saved, loaded and asked, and the command answers; and mypy reads the types of a user's program from the wheel.

Run by the Python of an environment that has build, hatchling, mypy and twine (`.venv-build`).
"""

from __future__ import annotations

import email
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]

SMOKE = """
import tempfile
from pathlib import Path

import numpy as np
import sklearn.datasets

import pilae

assert "site-packages" in pilae.__file__, pilae.__file__
X, y = sklearn.datasets.load_iris(return_X_y=True)
model = pilae.PILAEClassifier(random_state=0).fit(X, y)
assert model.score(X, y) > 0.95
with tempfile.TemporaryDirectory() as folder:
    model.save(Path(folder) / "iris.pilae")
    again = pilae.load(Path(folder) / "iris.pilae")
assert (again.predict_proba(X) == model.predict_proba(X)).all()
assert pilae.PILAERegressor(depth=1).fit(X[:, :3], X[:, 3]).score(X[:, :3], X[:, 3]) > 0.9
images = np.random.default_rng(0).random((60, 8, 8))
assert pilae.ConvPILAE(patch=3, filters=4, pool=2).fit(images).transform(images).shape[0] == 60
print(pilae.__version__)
"""

USER = """import pilae
reveal_type(pilae.PILAEClassifier(depth=1))
pilae.scan_csv()
"""
TYPES = [
    'user.py:2: note: Revealed type is "pilae._estimators.classifier.PILAEClassifier"',
    'user.py:3: error: Missing positional argument "path" in call to "scan_csv"  [call-arg]',
]
"""What a type checker says about the program above where it finds pilae's types."""


def build(folder: Path, *, zone: str, mask: int, clock: float) -> dict[str, Path]:
    """Wheel and sdist of the working tree, built from a copy of it in `folder`."""
    source = folder / "source"
    for name in files("."):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
        (source / name).chmod(0o666 & ~mask)
        os.utime(source / name, (clock, clock))
    environment = {**os.environ, "TZ": zone, "PYTHONHASHSEED": str(int(clock) % 1000)}
    environment.pop("SOURCE_DATE_EPOCH", None)  # hatchling's own date, so that nobody has to know which one we took
    call = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", source]
    run(call, env=environment, umask=mask)
    return {path.suffix: path for path in (folder / "dist").iterdir()}


def files(place: str) -> list[str]:
    """What git knows of a folder and what it would not ignore, as far as it is there."""
    call = ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", place]
    return [name for name in run(call, cwd=ROOT).splitlines() if (ROOT / name).is_file()]


def run(call: list, **options) -> str:
    done = subprocess.run([str(word) for word in call], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, call))}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def built_twice(folder: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """The files, and the SHA-256 of each, which is that of both builds."""
    ways = ({"zone": "UTC", "mask": 0o022, "clock": time.time()}, {"zone": "Asia/Tokyo", "mask": 0o077, "clock": 1e9})
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda k: build(folder / f"build{'-again' * k}", **ways[k]), range(2))
    hashes = {}
    for kind, path in one.items():
        first, second = (hashlib.sha256(way[kind].read_bytes()).hexdigest() for way in (one, two))
        if first != second:
            raise SystemExit(f"{path.name} differs between two builds: {first} and {second}.")
        hashes[path.name] = first
    return one, hashes


def check_contents(wheel: Path, sdist: Path) -> None:
    """The wheel holds the package and nothing else, the metadata is complete, the sdist has what builds it."""
    package = {name.removeprefix("src/") for name in files("src/pilae")}
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        metadata = email.message_from_bytes(archive.read(f"{info}/METADATA"))
    expect({name for name in names if not name.startswith(f"{info}/")} == package, "the wheel is not src/pilae")
    expect("pilae/py.typed" in names, "the wheel lacks py.typed")
    expect(f"{info}/licenses/LICENSE" in names, "the wheel lacks the licence")
    for field in (
        "Name",
        "Version",
        "Summary",
        "Author",
        "License-Expression",
        "Requires-Python",
        "Description-Content-Type",
    ):
        expect(metadata[field], f"the metadata lacks {field}")
    with tarfile.open(sdist) as archive:
        inside = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    for name in (
        "PKG-INFO",
        *files("."),
    ):  # its tests read the studies, the documentation and the tools
        expect(name in inside, f"the sdist lacks {name}")


def expect(holds: object, otherwise: str) -> None:
    if not holds:
        raise SystemExit(f"{otherwise}.")


def check_installed(folder: Path, archive: Path) -> None:
    """What a clean environment answers after `pip install` of the archive."""
    run([sys.executable, "-m", "venv", "--without-pip", folder])
    python = folder / "bin" / "python"
    run([sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile", archive])
    quiet = {"cwd": folder, "env": {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}}
    version = run([python, "-W", "error", "-c", SMOKE], **quiet).strip()
    said = run([folder / "bin" / "pilae", "--version"], **quiet).strip()
    expect(said == f"pilae {version}", f"pilae --version says {said!r}, the package {version!r}")
    if archive.suffix != ".whl":  # the same files: types are read once
        return
    (folder / "user.py").write_text(USER)
    call = [sys.executable, "-m", "mypy", "--python-executable", python, "--cache-dir", folder / "mypy", "user.py"]
    types = subprocess.run([str(word) for word in call], cwd=folder, capture_output=True, text=True)
    expect(types.stdout.splitlines()[:-1] == TYPES, f"mypy does not see pilae's types:\n{types.stdout}{types.stderr}")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="pilae-package-") as place:
        folder = Path(place)
        files, hashes = built_twice(folder)
        wheel, sdist = files[".whl"], files[".gz"]
        check_contents(wheel, sdist)
        run([sys.executable, "-m", "twine", "check", "--strict", wheel, sdist])
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(check_installed, (folder / "from-wheel", folder / "from-sdist"), (wheel, sdist)))
        (ROOT / "dist").mkdir(exist_ok=True)
        for path in (wheel, sdist):
            shutil.copy(path, ROOT / "dist")
    for name, digest in hashes.items():
        print(f"{digest}  dist/{name}")


if __name__ == "__main__":
    main()
