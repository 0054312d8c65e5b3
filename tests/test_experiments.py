"""The experiments: a back-propagation that learns and stops, results that can be continued, pages made from numbers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

from experiments import bp, common, paper, render
from experiments.fit_formula import TRIPLES, coefficients
from experiments.table3 import widths

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
    assert common.pixels(colour).shape == (2, 1024)
    assert common.pixels(colour).max() == pytest.approx(1.0)
    pairs = np.zeros((2, 2, 96, 96), np.uint8)
    pairs[0, 1, :3, :3] = 90
    rows = common.pixels(pairs)
    assert rows.shape == (2, 2048)
    assert rows[0, 1024] == pytest.approx(90 / 255)
    assert np.count_nonzero(rows) == 1


def test_a_run_goes_on_where_it_was_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(common, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(common, "UNFINISHED", tmp_path / "unfinished")
    calls = []

    def cell(name, error=None):
        def measure():
            calls.append(name)
            if error is not None:
                raise error
            return {"accuracy": 0.5, "bp": {0: {"accuracy": 0.25}}}

        return measure

    with pytest.raises(KeyboardInterrupt):
        common.run("part", {"a": cell("a"), "b": cell("b", KeyboardInterrupt())})
    assert not (tmp_path / "results").exists()
    cells = {"a": cell("a"), "b": cell("b"), "c": cell("c", FileNotFoundError("get it there"))}
    common.run("part", cells)
    assert calls == ["a", "b", "b", "c"]
    found = json.loads((tmp_path / "results/part.json").read_text())
    assert found["cells"]["c"]["missing"] == "get it there"
    assert found["machine"]["commit"]
    common.run("part", cells)  # another part was interrupted: this one is not measured again, what was missing is tried
    assert calls == ["a", "b", "b", "c", "c"]
    common.forget_unfinished()
    common.run("part", {"a": cell("a", FileNotFoundError("gone")), "b": cell("b")})
    assert common.read("part")["cells"]["a"]["accuracy"] == 0.5  # numbers are not replaced by nothing
    common.forget_unfinished()
    common.run("part", {"a": lambda: {"accuracy": 0.51, "bp": {0: {"accuracy": 0.255}}}, "b": cell("b")})
    lines = capsys.readouterr().err.splitlines()
    assert "part: a/accuracy: 0.5100, in the repository 0.5000" in lines
    assert lines[-1].startswith("part: 3 of 4 accuracies as in the repository")


def test_the_papers_numbers():
    assert widths(784) == [705, 634]
    assert len(TRIPLES) == 11
    assert set(paper.DATA) == {row.name for row in paper.TABLES} | set(paper.TABLE_3)
    assert coefficients().shape == (5,)


@pytest.mark.parametrize("quick", ["", "1"])
def test_the_pages_are_those_of_the_numbers(quick):
    code = "from experiments import render; assert render.page() == render.TARGET.read_text()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env=os.environ | {"QUICK": quick})


def test_the_readme_table_is_that_of_the_numbers():
    assert render.readme() in (ROOT / "README.md").read_text()
