"""Bounds, licences and vulnerabilities of what pilae depends on."""

import mmap
import re

import pytest

from tools import audit, dependencies, licences
from torture import load, supply
from torture.harness import Broken

DECLARED = dependencies.declared()


def test_lower_bounds_are_constraints_for_every_dependency():
    pinned = dict(line.split("==") for line in dependencies.lowest())
    assert set(pinned) == set(DECLARED) - {"torch"}
    assert pinned["numpy"] == "2.0"
    assert {"core", "dev", "table"} <= {place for one in DECLARED.values() for place in one.asked_by}
    assert {place for one in DECLARED.values() for place in one.asked_by} - {"core", "build", "dev", "docs"} == set(
        dependencies.USERS_EXTRAS
    )


def test_bounds_that_differ_or_say_something_else_are_refused(tmp_path, monkeypatch):
    text = (dependencies.ROOT / "pyproject.toml").read_text()
    monkeypatch.setattr(dependencies, "ROOT", tmp_path)
    (tmp_path / "pyproject.toml").write_text(text.replace('save = ["skops>=0.13"]', 'save = ["skops>=0.12"]'))
    with pytest.raises(ValueError, match=r"asks for skops 0\.12 and 0\.13"):
        dependencies.declared()
    (tmp_path / "pyproject.toml").write_text(text.replace('"numpy>=2.0"', '"numpy>=2.0,<3"'))
    with pytest.raises(ValueError, match="is not name>=version"):
        dependencies.declared()


def test_what_is_installed_is_not_below_its_bound(monkeypatch):
    assert supply._numbers("2.13.0+cpu") == [2, 13] < supply._numbers("2.13.1rc1") == [2, 13, 1]
    monkeypatch.setattr(supply, "version", lambda name: "0.0.1")
    with pytest.raises(Broken, match=r"0\.0\.1 is installed, below the bound"):
        supply._bounds()


def test_every_dependency_has_the_licence_that_the_page_states():
    page = licences.table()
    assert {name: asked for name, (asked, _, _) in page.items()} == {
        name: ", ".join(one.asked_by) for name, one in DECLARED.items()
    }
    here = {name: found for name in DECLARED if (found := licences.licence(name)) is not None}
    assert set(here) >= {name for name, one in DECLARED.items() if {"core", "dev"} & set(one.asked_by)}
    for name, (version, stated) in here.items():
        assert licences.families(stated) & licences.families(page[name][2]), name
        if version == page[name][1]:  # the wording may change from one version to the next, the licence may not
            assert stated == page[name][2], name


@pytest.mark.parametrize(
    "text", ["GPL-3.0-or-later", "GNU Affero General Public License v3", "MIT AND AGPL-3.0", "Ours"]
)
def test_licences_that_bind_users_are_refused(text):
    with pytest.raises(ValueError, match=re.escape(text)):
        licences.families(text)


@pytest.mark.parametrize(
    ("canary", "answer", "status"),
    [
        (["CVE-2024-22195"], {"a==1": [], "b==2": []}, 0),
        (["CVE-2024-22195"], {"a==1": [], "b==2": ["CVE-1"]}, 1),
        (["CVE-2024-22195"], {"a==1": []}, 3),  # nothing was said about b
        ([], {"a==1": [], "b==2": []}, 3),  # a service that finds nothing in what is known to be vulnerable
        (None, None, 3),
    ],
)
def test_an_audit_passes_only_if_everything_was_asked_about(monkeypatch, capsys, canary, answer, status):
    monkeypatch.setattr(audit, "newest", lambda: ["a==1", "b==2"])
    monkeypatch.setattr(audit, "lowest", lambda: ["a==1", "b==2"])

    def ask(service, requirements):
        if requirements == [audit.CANARY]:
            return None if canary is None else {audit.CANARY: canary}
        return answer

    monkeypatch.setattr(audit, "ask", ask)
    assert audit.main() == status
    said = capsys.readouterr().out
    assert ("NOT audited" in said) == (status == 3)
    assert ("CVE-1" in said) == (status == 1)


def test_a_leak_is_found():
    kept, files = [], []

    def leak():
        kept.append(
            mmap.mmap(-1, 2**20, flags=mmap.MAP_PRIVATE)
        )  # not from what earlier tests gave back to this process
        kept[-1].write(bytes(2**20))

    def leak_a_file():
        files.append(open(__file__))  # noqa: SIM115

    with pytest.raises(Broken, match="memory grew"):
        load._held(leak, 20, "leak", "here")
    with pytest.raises(Broken, match="bytes and"):
        load._traced(lambda: kept.append(bytearray(200_000)), 10, "leak", "here")
    with pytest.raises(Broken, match="objects behind"):
        load._traced(lambda: kept.append([]), 10, "leak", "here")
    with pytest.raises(Broken, match="open files"):
        load._held(leak_a_file, 8, "files", "here")
    for file in files:
        file.close()
