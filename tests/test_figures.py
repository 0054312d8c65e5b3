"""One command for all figures, and a manifest that says what each is of."""

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from studies import figures, quoted
from studies.figures import PARTS, Part, altered, main

STUDIES = Path(__file__).parents[1] / "studies"


def test_every_figure_is_in_the_manifest_as_it_was_measured():
    owners = Counter(path for part in PARTS.values() for path in part.found)
    assert set(owners) == set(STUDIES.glob("*/results/**/*.json"))
    assert max(owners.values()) == 1
    for name in PARTS:
        assert altered(name) == [], f"python -m studies.figures --note {name!r}"
    assert json.loads(figures.MANIFEST.read_text())["parts"].keys() == PARTS.keys()


def test_every_part_names_a_command_and_packages_that_are_there():
    targets = (STUDIES.parent / "Makefile").read_text()
    for name, part in PARTS.items():
        if part.command[0] == "make":
            assert f"\n{part.command[1]}:" in targets, name
        else:
            assert (STUDIES.parent / f"{part.command[0].replace('.', '/')}.py").is_file(), name
        assert all((STUDIES.parent / "src/pilae" / package / "__init__.py").is_file() for package in part.code), name


@pytest.mark.parametrize("page", quoted.pages())
def test_a_sentence_quotes_no_figure_that_was_not_measured(page):
    known = quoted.QUOTED.get(page, {})
    assert quoted.figures_in((STUDIES.parent / page).read_text()) == set(known)
    for words, source in known.items():
        if isinstance(source, quoted.Measured):
            assert STUDIES / source.file in {path for part in PARTS.values() for path in part.found}
            assert source.like(words) == re.match(r"[\d.]+", words.replace(",", ""))[0], (page, words)


def test_figures_are_found_in_sentences_alone():
    made = "<!-- a -->\n| 7 s |\n<!-- /a -->"
    text = f"3.5 seconds, `10 ms`, .975 of them.\n{made}\n$x = 5\\%$ of [99%](a#1%) on 2.4.1"
    assert quoted.figures_in(text) == {"3.5 seconds", ".975", "99%"}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with two packages and one study."""
    for name, text in {
        "src/pilae/_engine/__init__.py": "",
        "src/pilae/_search/__init__.py": "",
        "studies/__init__.py": "",
        "studies/small/__init__.py": "",
        "studies/small/fast.py": (
            "import json, pathlib, subprocess\n"
            "commit = subprocess.run(['git', 'rev-parse', '--short', 'HEAD'], capture_output=True, text=True).stdout\n"
            "path = pathlib.Path('studies/small/results/fast.json')\n"
            "path.parent.mkdir(exist_ok=True)\n"
            "path.write_text(json.dumps({'machine': {'commit': commit.strip(), 'cpu': 'a'}, 'cases': {}}))\n"
        ),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "MANIFEST", tmp_path / "studies/manifest.json")
    fast = Part(("studies.small.fast",), ("small/results/fast.json",), ("_engine",))
    monkeypatch.setattr(figures, "PARTS", {"fast": fast, "card": fast._replace(gpu=True, files=("none/*.json",))})
    monkeypatch.setattr(figures, "_lacks", lambda part: "there is no GPU here" if part.gpu else "")
    return tmp_path


def git(folder, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "more")


def test_figures_are_measured_once_and_again_when_their_code_has_changed(project, capsys):
    assert main(["--check"]) == 1
    assert "fast: not measured yet" in capsys.readouterr().out
    assert main([]) == 0
    said = capsys.readouterr().out
    assert "fast (1 of 2): studies.small.fast" in said
    assert "card: left out, there is no GPU here" in said
    entry = json.loads((project / "studies/manifest.json").read_text())["parts"]["fast"]
    assert entry["commits"] == [git(project, "rev-parse", "--short", "HEAD").strip()]
    assert entry["machines"] == [{"cpu": "a"}]
    assert "seconds" in entry
    commit(project)
    (project / "src/pilae/_search/__init__.py").write_text("# which it does not depend on\n")
    commit(project)
    engine = project / "src/pilae/_engine/__init__.py"
    engine.write_text('"""It depends on this package."""\n\nx = 1\n"""Not on its sentences."""\n')
    commit(project)
    assert main(["--check", "fast"]) == 1
    assert main(["fast"]) == 0
    commit(project)
    engine.write_text('"""It does depend on this one."""\n\nx = 1  # which is one\n')
    commit(project)
    assert main(["--check", "fast"]) == 0
    engine.write_text("x = 2\n")
    with pytest.raises(SystemExit, match="not committed"):
        main(["fast"])
    commit(project)
    assert main(["--check", "fast"]) == 1
    assert "since then changed: _engine" in capsys.readouterr().out


def test_a_file_that_was_changed_by_hand_is_told(project, capsys):
    main(["fast"])
    path = project / "studies/small/results/fast.json"
    path.write_text(path.read_text().replace('"cases": {}', '"cases": {"a": 1}'))
    assert altered("fast") == ["small/results/fast.json"]
    assert main(["--check", "fast"]) == 1
    assert "is not what was measured" in capsys.readouterr().out
    main(["--note", "fast"])
    assert altered("fast") == []


def test_figures_of_other_libraries_do_not_grow_old_with_pilae(project, monkeypatch):
    part = PARTS["peers, tables"]._replace(files=("small/results/peers.json",), command=("studies.small.fast",))
    monkeypatch.setattr(figures, "PARTS", {"peers": part})
    (project / "studies/small/results").mkdir()
    here = git(project, "rev-parse", "--short", "HEAD").strip()
    models = {"pilae": {"0": {"commit": here}}, "LightGBM": {"0": {"commit": "1234567"}}}
    results = {"machine": {"commit": here}, "tables": {"a": {"models": models}}}
    (project / "studies/small/results/peers.json").write_text(json.dumps(results))
    main(["--note"])
    entry = json.loads((project / "studies/manifest.json").read_text())["parts"]["peers"]
    assert entry["commits"] == [here]
    assert entry["commits of others"] == ["1234567"]
    assert figures.stale("peers") == ""


def test_a_commit_that_is_gone_a_part_that_fails_and_one_that_is_not_there(project, capsys):
    (project / "studies/small/results").mkdir()
    (project / "studies/small/results/fast.json").write_text('{"machine": {"commit": "1234567"}}')
    main(["--note"])
    assert main(["--check", "fast"]) == 1
    assert "measured at 1234567, which this history does not have" in capsys.readouterr().out
    (project / "studies/small/fast.py").write_text("raise SystemExit(3)")
    commit(project)
    assert main(["fast"]) == 1
    with pytest.raises(SystemExit):
        main(["slow"])
    assert "there is no part 'slow'" in capsys.readouterr().err
