"""Reports and plots: everything they say is in the summary, user strings are escaped, nothing comes from elsewhere."""

import json
import re

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits, load_iris

from pilae import PILAEClassifier, PILAERegressor, StackedPILAE
from pilae.plot import CalibrationDisplay, DepthDisplay, SpectrumDisplay, WidthPathDisplay

matplotlib.use("Agg")
HOSTILE = np.array(["<script>alert(1)</script>", "a|b*c_d", '"quoted" & $money$'])


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    model = PILAEClassifier(random_state=0).fit(X[::2], HOSTILE[y[::2]])
    return model.report(X[1::2], HOSTILE[y[1::2]], title="Iris <i>&</i>")


def test_the_page_is_whole_and_alone(iris, tmp_path):
    iris.save(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "http" not in re.sub(r"http://www\.w3\.org/[\w/.]+", "", page)  # names of SVG's elements are no addresses
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "Iris &lt;i&gt;&amp;&lt;/i&gt;" in page
    assert page.count("<svg") == len(iris.figures) >= 4
    assert "currentColor" in page
    assert len(page) < 1_000_000


def test_markdown_and_json_say_the_same(iris, tmp_path):
    iris.save(tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text()
    assert "<script" not in text
    assert "a\\|b\\*c\\_d" in text
    iris.save(tmp_path / "r.json")
    found = json.loads((tmp_path / "r.json").read_text())
    assert found == json.loads(json.dumps(iris.summary))
    assert f"{found['test']['score']:.4g}" in text
    assert found["training"]["classes"] == sorted(HOSTILE)
    assert np.sum(found["test"]["confusion"]) == 75


def test_the_code_builds_the_same_model(iris):
    space = {"X": load_iris().data[::2], "y": HOSTILE[load_iris().target[::2]]}
    exec(iris.summary["code"], space)
    assert space["model"].loo_score_ == iris.summary["training"]["leave_one_out"]


def test_a_notebook_shows_it(iris):
    shown = iris._repr_html_()
    assert shown.startswith("<iframe")
    assert "<script" not in shown


def test_images_are_drawn_with_what_layers_keep():
    X, y = load_digits(return_X_y=True)
    model = PILAEClassifier(width=[40, 30], head_width=100, random_state=0).fit(X[:1000], y[:1000])
    report = model.report(X[1000:], y[1000:])
    assert set(report.figures) == {"spectrum", "reconstruction", "confusion", "calibration"}
    first, second = (each["error"] for each in report.summary["reconstruction"]["layers"])
    assert 0 < first < second < 1
    assert "data:image/png;base64" in report.figures["reconstruction"]


def test_regression():
    X, y = load_diabetes(return_X_y=True)
    model = PILAERegressor(random_state=0).fit(X[:300], y[:300])
    report = model.report(X[300:], y[300:])
    assert {"residuals", "coverage"} <= set(report.figures)
    assert report.summary["test"]["r2"] == pytest.approx(model.score(X[300:], y[300:]))
    wanted, found = zip(*report.summary["test"]["coverage"], strict=True)
    assert wanted == (0.5, 0.8, 0.9, 0.95)
    assert list(found) == sorted(found)
    assert "R²" in report.to_html()


def test_without_test_rows_and_with_other_heads():
    X, y = load_iris(return_X_y=True)
    for model in (PILAEClassifier(head="softmax", depth=1), PILAEClassifier(depth=0, head_width=10)):
        report = model.fit(X, y).report()
        assert "test" not in report.summary
        assert "The network" in report.to_html()
        assert "## The network" in report.to_markdown()


def test_the_width_path_and_the_depth_are_drawn():
    X, y = load_digits(return_X_y=True)
    model = PILAEClassifier(random_state=0).fit(X, y)
    display = WidthPathDisplay.from_estimator(model)
    assert display.figure_ is display.ax_.figure
    assert display.path.standard_errors.shape == display.path.errors[display.path.ridge].shape
    assert any(line.get_label() == f"{display.width} columns" for line in display.ax_.lines)
    depth = DepthDisplay.from_estimator(model, ax=matplotlib.figure.Figure().subplots())
    assert sum(depth.chosen) >= 1
    given = PILAEClassifier(depth=0, head_width=20).fit(X, y)
    with pytest.raises(ValueError, match="has no width path"):
        WidthPathDisplay.from_estimator(given)
    with pytest.raises(ValueError, match="was not searched"):
        DepthDisplay.from_estimator(given)


def test_the_spectrum_shows_the_rank():
    X = np.random.default_rng(0).standard_normal((50, 4)) @ np.random.default_rng(1).standard_normal((4, 9))
    display = SpectrumDisplay.from_data(X)
    assert display.rank == 4 == PILStackRank(X)
    assert display.values[0] == 1.0


def PILStackRank(X):
    return StackedPILAE(width=[2], input_scaling="none").fit(X).layers_[0].rank


def test_calibration_of_probabilities_that_are_right():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1.0, 20_000)
    y = (rng.uniform(size=p.size) < p).astype(int)
    display = CalibrationDisplay.from_predictions(y, np.stack([1 - p, p], axis=1), [0, 1])
    assert display.error < 0.02
    overconfident = CalibrationDisplay.computed(y, np.stack([np.zeros_like(p), np.ones_like(p)], axis=1), [0, 1])
    assert overconfident.error == pytest.approx(1 - y.mean())
