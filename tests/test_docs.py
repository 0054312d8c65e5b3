"""Every block of code and every command of the README and the documentation that one machine can run is run here.

The blocks of a page share one namespace and run in order, in an empty folder. A block that needs more than that is
marked by a line before it, `% not executed: why` (in the README, where that would show, an HTML comment), and listed.
What a block of text shows is what the block before it prints, numbers aside.
"""

import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib
import matplotlib.pyplot as plt
import pytest

from pilae.cli import main

matplotlib.use("Agg")
ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
STUDIES = sorted(path.relative_to(ROOT / "studies") for path in (ROOT / "studies").rglob("*.md"))
EXAMPLES = sorted(path.name for path in (ROOT / "docs/examples").glob("*.py") if path.name != "federated.py")
"""That one is run by test_public."""

NOT_EXECUTED = [
    ("README.md", "the files are the reader's; docs/cli.md runs the same commands on its own"),
    (
        "README.md",
        "make demo sets up an environment and runs docs/examples/demo.py, which a test runs; make test is the tests",
    ),
    ("README.md", "installs software"),
    ("docs/data.md", "needs a cluster"),
    ("docs/embeddings.md", "downloads a model"),
    ("docs/gpu.md", "needs a GPU"),
    ("docs/start.md", "installs software"),
    ("docs/stream.md", "needs river"),
]

NO_PICTURE = {f"docs/{page}.md" for page in ("api", "changelog", "contributing", "guide", "licences", "promises")} | {
    "docs/reproduction.md",
    "docs/results.md",
}
"""Lists, and pages that are files elsewhere."""

HOLDS = {
    "README.md": "model.score(X_test, y_test) > 0.95 and X_hat.shape == X_test.shape",
    "docs/data.md": "model.fit_stats_['rows'] == 500 and stream.classes_[2] == 7 and pooled.score(X, y) > 0.6",
    "docs/embeddings.md": "model.score(E_test, y_test) > 0.95",
    "docs/groups.md": "scores[0][0] > scores[0][1] + 0.2 and abs(scores[-1][2] - scores[-1][3]) < 0.05",
    "docs/images.md": "model.score(X_test, y_test) > 0.95",
    "docs/deletion.md": "after.max() < 1e-8 and 0.003 < np.median(before) < 0.03",
    "docs/later_classes.md": "min(ours) > 0.9 > theirs[-1] and balanced.classes_.tolist() == list(range(10)) and max("
    "abs(m.score(X_test, y_test) - s) for m, s in ((at_once, 0.980), (joint, 0.991), (given, 0.982), (again, 0.982))"
    ") < 0.01",
    "docs/sites.md": "merged.score(X_test, y_test) == pooled.score(X_test, y_test) > max(scores)",
    "docs/stream.md": "fading.stream_score_ > 0.9 and recent.stream_score_ > 0.9 > everything.stream_score_",
    "docs/report.md": "report.summary['test']['score'] > 0.9 and report.summary['shuffled'][0]['column'] == 'rooms'",
    "docs/start.md": "model.score(X_test, y_test) > 0.9",
    "docs/tables.md": "model.score(houses[400:], price[400:]) > 0.8 and text.score(notes[400:], price[400:]) > 0.4",
}
"""What is true after the last block of a page."""

NEEDS = {"docs/start.md": "sklearn.callback"}
"""Modules that the oldest versions pilae works with do not have; the page says from which version on."""


class Block(NamedTuple):
    line: int
    kind: str
    text: str
    reason: str | None
    """Why it is not executed."""


def blocks_of(page):
    lines = (ROOT / page).read_text().splitlines()
    found, k = [], 0
    while k < len(lines):
        if lines[k].startswith("```"):
            end = lines.index("```", k + 1)
            mark = re.fullmatch(r"(?:%|<!--) not executed: (.*?)(?: -->)?", lines[k - 1]) if k else None
            text = "\n".join(lines[k + 1 : end])
            found.append(Block(k + 1, lines[k].removeprefix("```"), text, mark and mark[1]))
            k = end
        k += 1
    return found


def commands(block):
    return [command for command, _ in answered(block)]


def answered(block):
    """Every command, and the lines that are shown below it."""
    found = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        elif found:
            found[-1][1].append(line)
    return found


def without_numbers(lines):
    """They depend on the machine, and what is measured moves when the search does."""
    return [re.sub(r"-?\d[\d,]*(\.\d+)?", "0", line) for line in lines]


def is_shown(lines, shown):
    """Whether lines are what is shown, of which a line of dots stands for any that are left out."""
    pattern = "".join(r"(?:.*\n)*" if line == "..." else f"{re.escape(line)}\n" for line in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


ALL = {page: blocks_of(page) for page in PAGES}


def test_blocks_are_of_a_kind_that_is_run_or_marked():
    kinds = [block.kind for blocks in ALL.values() for block in blocks if not block.kind.startswith("{")]
    assert set(kinds) == {"python", "console", "bash", "text"}
    assert kinds.count("python") >= 30
    for page, blocks in ALL.items():
        for block in blocks:
            if block.kind in ("console", "bash") and block.reason is None:
                assert commands(block), (page, block.line)
                assert all(command.startswith("pilae ") for command in commands(block)), (page, block.line)


def test_what_is_not_executed_is_listed():
    marked = [(page, block.reason) for page, blocks in ALL.items() for block in blocks if block.reason]
    assert sorted(marked) == sorted(NOT_EXECUTED)


@pytest.mark.parametrize("page", [page for page, blocks in ALL.items() if any(b.kind[:1] != "{" for b in blocks)])
def test_the_code_runs(page, tmp_path, monkeypatch, capsys):
    pytest.importorskip(NEEDS.get(page, "sklearn"))
    monkeypatch.chdir(tmp_path)
    space = {"__name__": "__main__"}
    for block in ALL[page]:
        if block.reason is not None or block.kind.startswith("{"):
            continue
        if block.kind == "text":  # what the block before has printed
            assert without_numbers(capsys.readouterr().out.splitlines()) == without_numbers(block.text.splitlines())
        elif block.kind == "python":
            capsys.readouterr()
            exec(compile("\n" * block.line + block.text, page, "exec"), space)  # errors name the page's line
        else:
            for command, shown in answered(block):
                capsys.readouterr()
                assert main(shlex.split(command)[1:]) == 0, command
                said = capsys.readouterr()
                if shown:
                    lines = without_numbers((said.err + said.out).splitlines())
                    assert is_shown(lines, without_numbers(shown)), (command, lines)
    plt.close("all")
    if page in HOLDS:
        assert eval(HOLDS[page], space)


@pytest.mark.parametrize("script", EXAMPLES)
def test_the_examples_run(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [script, "picture.svg"])
    monkeypatch.setattr(plt, "show", lambda: None)
    runpy.run_path(str(ROOT / "docs/examples" / script), run_name="__main__")
    plt.close("all")


def prose(page):
    """A page without its code."""
    return re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.M | re.S)


def anchors(page):
    """What a link into a page can name: its headings, as GitHub and MyST name them, and places named by hand."""
    heads = re.findall(r"^#{1,6} (.*)$", prose(page), flags=re.M)
    named = re.findall(r"^\((.*)\)=$", prose(page), flags=re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads} | set(named)


LINKING = [*PAGES, "CONTRIBUTING.md", "CHANGELOG.md", *sorted(f"studies/{path}" for path in STUDIES)]


@pytest.mark.parametrize("page", LINKING)
def test_links_between_files_lead_somewhere(page):
    for place, anchor in re.findall(r"\]\((?!https?:)([^)\s#]*)#?([^)\s]*)\)", prose(page)):
        target = (ROOT / page).parent / place if place else ROOT / page
        assert place == "auto_examples/index.rst" or target.exists(), (page, place)  # make docs writes that one
        if anchor:
            assert anchor in anchors(target.resolve().relative_to(ROOT)), (page, place, anchor)


def test_pages_that_answer_a_question_have_a_picture_and_pictures_have_words():
    for page in PAGES:
        pictures = re.findall(r"!\[([^]]*)\]\(([^)]*)\)", prose(page))
        assert bool(pictures) != (page in NO_PICTURE), page
        assert all(len(words) > 20 for words, _ in pictures), page
    used = {Path(place).name for page in PAGES for place in re.findall(r"!\[[^]]*\]\(([^)]*)\)", prose(page))}
    assert {path.name for path in (ROOT / "docs").glob("*.svg")} <= used
