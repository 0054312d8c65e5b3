"""Models say what they said: small ones against recorded answers, and files of earlier versions."""

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

import pilae
from behaviour import compare
from behaviour.cases import CASES
from behaviour.files import FILES, FOLDER, opened, stored
from pilae.save.archive import FORMAT

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::ResourceWarning",
    "ignore::FutureWarning",
    "ignore:.* of scikit-learn .*, and this is",  # files are of other versions, that is their point
)
RECORDED = compare.read()
REFUSED = {"format-2", "table-of-an-encoder", "table-of-skrub"}
"""Files of before the first release, which tests of errors need."""


@pytest.mark.parametrize("name", CASES)
def test_a_model_says_what_it_said(name):
    over, value = compare.worst(CASES[name], RECORDED[name])
    assert over <= 1, f"{value} is {over:.3g} times its bound from what was recorded"


@pytest.mark.parametrize("name", FILES)
def test_a_file_loads_and_says_what_it_said(name):
    over, value = compare.worst(FILES[name], RECORDED[f"file: {name}"])
    assert over <= 1, f"{value} is {over:.3g} times its bound from what was recorded"


def test_files_of_a_released_format_are_what_they_were_and_load(tmp_path):
    """A later version reads every one of them: none may be made anew, and none may go."""
    frozen = json.loads((Path(compare.__file__).parent / "frozen.json").read_text())
    assert str(FORMAT) in frozen
    named = {name for released in frozen.values() for name in released["files"]}
    assert named == {path.name.removesuffix(".pilae.xz") for path in FOLDER.glob("*.xz")} - REFUSED
    kinds = set()
    for version, released in frozen.items():
        for name, digest in released["files"].items():
            assert hashlib.sha256(stored(name).read_bytes()).hexdigest() == digest, name
            kinds.add(type(opened(name, tmp_path)).__name__)
            with zipfile.ZipFile(tmp_path / f"{name}.pilae") as archive:
                assert json.loads(archive.read("header.json"))["format"] == int(version)
    public = {name for name in pilae.__all__ if hasattr(getattr(pilae, name), "save")}
    assert kinds == public | {"Pipeline"}  # of a table, by the command line


def test_every_answer_belongs_to_a_case():
    assert set(RECORDED) == set(CASES) | {f"file: {name}" for name in FILES}
