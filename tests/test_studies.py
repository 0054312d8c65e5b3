"""The studies: a back-propagation that learns and stops, results that can be continued, pages made from numbers."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

from helpers import tolerance
from studies import render, store
from studies.__main__ import PAGES, PICTURES
from studies.continual import peers, tasks
from studies.data import Split, pixels
from studies.measure import describe
from studies.paper import bp, paper
from studies.paper.fit_formula import TRIPLES, coefficients
from studies.paper.table3 import widths

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(600, 5, centers=3, cluster_std=1.0, random_state=0)
    return bp.tensors(X[:500], y[:500], X[500:], y[500:])


def test_back_propagation_learns_and_stops(blobs):
    curve = bp.classifier(*blobs, [20], 0, bp.Saturation(patience=5, least=1e-3, epochs=60, updates=0))
    assert curve.saturated
    assert len(curve.seconds) == len(curve.test) < 60
    assert curve.test[curve.best] > 0.95
    assert curve.validation[curve.best] == max(curve.validation)
    again = bp.classifier(*blobs, [20], 0, bp.Saturation(patience=5, least=1e-3, epochs=60, updates=0))
    assert again.validation == curve.validation


def test_the_weights_of_the_best_epoch_stay():
    torch.manual_seed(0)
    net = bp.mlp([2, 3, 1])
    X, T = torch.randn(64, 2), torch.randn(64, 1)
    kept, scores = [], iter([0.5, 0.9, 0.7, 0.6])

    def validate():
        kept.append([p.clone() for p in net.parameters()])
        return next(scores)

    rule = bp.Saturation(patience=2, least=0.0, epochs=4, updates=0)
    curve = bp.train(net, torch.nn.functional.mse_loss, X, T, validate, rule, 0)
    assert curve.best == 1
    assert curve.saturated
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), kept[1], strict=True))


def test_patience_counts_updates_where_an_epoch_has_few():
    rule = bp.Saturation(patience=10, least=0.0, epochs=200, updates=1000)
    assert rule.in_epochs(128 * 4) == (250, 2500)
    assert rule.in_epochs(128 * 400) == (10, 200)


def test_layers_are_trained_one_on_another(blobs):
    X, y, *_ = blobs
    stack = bp.greedy(X, y, [4, 3], 0, rule=bp.Saturation(patience=2, least=1e-2, epochs=5, updates=0))
    assert stack(X).shape == (500, 3)
    assert stack.seconds >= stack.seconds_to_best > 0
    assert stack.encoders[1][0].in_features == 4


def test_time_to_an_accuracy():
    curve = bp.Curve(seconds=[1.0, 2.0, 3.0], test=[0.5, 0.8, 0.7])
    assert curve.seconds_to(0.6) == 2.0
    assert curve.seconds_to(0.9) is None


def test_the_validation_rows_are_not_trained_on():
    train, validation = bp.held_out(100, 3)
    assert len(validation) == 10
    assert sorted([*train.tolist(), *validation.tolist()]) == list(range(100))


def test_colours_and_stereo_pairs_become_rows():
    colour = np.full((2, 32, 32, 3), 255, np.uint8)
    assert pixels(colour).shape == (2, 1024)
    assert pixels(colour).max() == pytest.approx(1.0)
    pairs = np.zeros((2, 2, 96, 96), np.uint8)
    pairs[0, 1, :3, :3] = 90
    rows = pixels(pairs)
    assert rows.shape == (2, 2048)
    assert rows[0, 1024] == pytest.approx(90 / 255)
    assert np.count_nonzero(rows) == 1


def test_a_run_goes_on_where_it_was_stopped(tmp_path, capsys):
    run = store.Run(tmp_path / "results", tmp_path / "unfinished", "make tables")
    calls = []

    def cell(name, error=None):
        def measure():
            calls.append(name)
            if error is not None:
                raise error
            return {"accuracy": 0.5, "bp": {0: {"accuracy": 0.25}}}

        return measure

    with pytest.raises(KeyboardInterrupt):
        run.measure("part", {"a": cell("a"), "b": cell("b", KeyboardInterrupt())})
    assert not (tmp_path / "results").exists()
    cells = {"a": cell("a"), "b": cell("b"), "c": cell("c", FileNotFoundError("get it there"))}
    run.measure("part", cells)
    assert calls == ["a", "b", "b", "c"]
    found = json.loads((tmp_path / "results/part.json").read_text())
    assert found["cells"]["c"]["missing"] == "get it there"
    assert found["machine"]["commit"] == describe()["commit"]  # none in an unpacked archive
    run.measure("part", cells)  # another part was interrupted: of this one only what was missing is tried again
    assert calls == ["a", "b", "b", "c", "c"]
    run.forget_unfinished()
    run.measure("part", {"a": cell("a", FileNotFoundError("gone")), "b": cell("b")})
    found = store.read(tmp_path / "results/part.json")
    assert found["cells"]["a"]["accuracy"] == 0.5  # numbers are not replaced by nothing
    run.forget_unfinished()
    run.measure("part", {"a": lambda: {"accuracy": 0.51, "bp": {0: {"accuracy": 0.255}}}, "b": cell("b")})
    lines = capsys.readouterr().err.splitlines()
    assert "part: a/accuracy: 0.5100, in the repository 0.5000" in lines
    assert lines[-1].startswith("part: 3 of 4 accuracies as in the repository")


def test_the_papers_numbers():
    assert widths(784) == [705, 634]
    assert len(TRIPLES) == 11
    assert set(paper.DATA) == {row.name for row in paper.TABLES} | set(paper.TABLE_3)
    assert coefficients().shape == (5,)


def test_cases_have_processes_of_their_own_and_keep_what_was_measured(tmp_path, monkeypatch, capsys):
    path, called = tmp_path / "cases.json", []
    store.write(path, {"methods": {"broken": {"seconds": 1}, "renamed": {}, "rare": {}}})

    def process(call, **_):
        called.append(call[2:])
        broken = call[3] == "broken"
        return subprocess.CompletedProcess(call, int(broken), 'warned\n{"seconds": 2}', "Traceback\nValueError: why")

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["cases", *words])
        cases = {"good": lambda: {"seconds": 2}, "broken": dict, "rare": dict}
        store.run_cases("studies.speed.cases", cases, default=["good", "broken"], key="methods")

    monkeypatch.setattr(store, "results_of", lambda study, name: tmp_path / f"{name}.json")
    monkeypatch.setattr(store, "describe", lambda: {"commit": "abc"})
    monkeypatch.setattr(store.subprocess, "run", process)
    with pytest.raises(SystemExit, match="1"):
        run("--cuda")
    assert called == [["studies.speed.cases", name, "--cuda", "--one"] for name in ("good", "broken")]
    assert capsys.readouterr().err == "broken failed: ValueError: why\n"
    found = {"good": {"seconds": 2, "commit": "abc"}, "broken": {"seconds": 1}, "rare": {}}
    assert store.read(path)["methods"] == found
    with pytest.raises(SystemExit, match="There is no case 'bad': choose among good; broken; rare"):
        run("bad")
    run("good", "--one")
    assert json.loads(capsys.readouterr().out) == {"seconds": 2}
    called.clear()
    for _ in range(2):  # the second time everything is there
        run("good", "rare", "--quick", "--continue", "--jobs=2")
    assert sorted(called) == [["studies.speed.cases", name, "--quick", "--one"] for name in ("good", "rare")]
    quick = store.read(tmp_path / "cases-quick.json")
    assert quick["methods"]["rare"] == {"seconds": 2, "commit": "abc", "options": ["--quick"]}
    assert quick["command"] == "python -m studies.speed.cases --quick"
    assert store.read(path)["methods"] == found  # a quick run takes the place of nothing
    run("good", "--continue")  # not what was measured
    assert called[-1] == ["studies.speed.cases", "good", "--one"]


def test_tasks_bring_every_row_once_and_peers_see_all_rows_scaled():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(260) % 26)
    for batches in (tasks.by_class(y, 1), tasks.by_class(y, 2), tasks.blurry(y), tasks.clients(y, 7)):
        assert sorted(np.concatenate(list(batches))) == list(range(260))
    assert [len(set(y[rows])) for rows in tasks.by_class(y, 2)] == [2] * 13
    X = rng.standard_normal((260, 3)) + y[:, None]
    scaled = peers.standardised(Split(X, y, X, y))
    np.testing.assert_allclose(scaled.X.mean(axis=0), 0, atol=tolerance("float32", terms=260))
    assert {"SGDClassifier", "MLPClassifier"} <= set(peers.learners(scaled))


def test_the_pages_are_those_of_the_results():
    assert {"README.md", "studies/README.md", "studies/paper/RESULTS.md", "docs/promises.md"} <= set(PAGES)
    for page, tables in PAGES.items():
        text = (ROOT / page).read_text()
        assert render.rendered(text, tables) == text, f"{page}: python -m studies render"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_that_of_its_results(name, tmp_path):
    stored, picture = (ROOT / name).read_text(), PICTURES[name]
    assert picture.source in stored, f"{name}: python -m studies render"
    picture.write(tmp_path / "picture.svg")
    drawn = (tmp_path / "picture.svg").read_text()
    assert len(drawn) < 70_000
    maker = "Matplotlib v[0-9.]*"
    if re.search(maker, stored)[0] == re.search(maker, drawn)[0]:  # others may put ticks elsewhere
        words = [re.findall("<!-- (.*) -->", text) for text in (stored, drawn)]
        assert words[0] == words[1], f"{name}: python -m studies render"


def test_every_mark_has_a_table():
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "studies").rglob("*.md")]:
        marks = re.findall("^<!-- /(.*) -->$", path.read_text(), flags=re.M)
        assert set(marks) == set(PAGES.get(path.relative_to(ROOT).as_posix(), ())), path
        assert len(marks) == len(set(marks))


def test_a_table_without_a_place_is_an_error():
    with pytest.raises(ValueError, match="no place for the table 'speed'"):
        render.rendered("<!-- speed -->", {"speed": lambda: ""})


def test_rows_of_a_table():
    rows = [
        {"name": "a", "seconds": 0.123456, "accuracy": 0.5, "runs": [0.5, 0.7]},
        {"name": "b", "seconds": 1234.5, "accuracy": None, "runs": [0.25]},
        {"name": "c", "missing": "no file"},
        ["d"],
    ]
    assert render.table(
        "data | s | % | ±", rows, "{name} | {seconds:short} | {accuracy:pc} | {runs:spread}", known=1
    ) == (
        "| data | s | % | ± |\n| --- | --- | --- | --- |\n| a | 0.123 | 50.00 | 60.00 ± 14.14 |\n"
        "| b | 1,234 | - | 25.00 |\n| c | not available here |  |  |\n| d |  |  |  |"
    )


def test_no_study_imports_another():
    shared = {"data", "measure", "render", "store"}
    for path in (ROOT / "studies").rglob("*.py"):
        place = path.relative_to(ROOT / "studies").parts
        own = {place[0]} if len(place) > 1 else set()
        if place in (("__main__.py",), ("why.py",)):
            continue  # which put them side by side
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "studies":
                parts = node.module.split(".")[1:2] or [name.name for name in node.names]
                assert set(parts) <= shared | own, path
