"""Reports and plots: everything they say is in the summary, user strings are escaped, nothing comes from elsewhere."""

import json
import re
from dataclasses import replace
from itertools import pairwise

import matplotlib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.linear_model import RidgeClassifier

from helpers import close, tolerance
from pilae import SHLN, PILAEClassifier, PILAERegressor, StackedPILAE, cli, load
from pilae.plot import CalibrationDisplay, DepthDisplay, ImportancesDisplay, SpectrumDisplay, WidthPathDisplay
from pilae.report import make_report, tested
from pilae.report.figures import STYLE, _coverage, _fifths, _place_legend, _roc
from pilae.report.parts import alike, as_given, shares, table
from pilae.report.summary import short_names
from pilae.report.verdict import verdict
from pilae.report.words import candidate_names

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
    assert f"{found['test']['score']:.3f}" in text
    assert found["training"]["classes"] == sorted(HOSTILE)
    assert np.sum(found["test"]["confusion"]) == 75


def test_the_code_builds_the_same_model(iris):
    space = {"X": load_iris().data[::2], "y": HOSTILE[load_iris().target[::2]]}
    exec(iris.summary["code"], space)
    assert space["model"].loo_score_ == iris.summary["training"]["leave_one_out"]


def test_the_code_leaves_out_how_it_was_run():
    model = PILAEClassifier(depth=0, head=SHLN(width=5)).fit(*load_iris(return_X_y=True))
    model.set_params(verbose=1, block_rows=100, device="cuda")
    code = "from pilae import PILAEClassifier, SHLN\n\nmodel = PILAEClassifier(depth=0, head=SHLN(width=5)).fit(X, y)"
    assert model.report().summary["code"] == code


def test_a_notebook_shows_it(iris):
    shown = iris._repr_html_()
    assert shown.startswith("<iframe")
    assert "<script" not in shown


def test_images_are_drawn_with_what_layers_keep():
    X, y = load_digits(return_X_y=True)
    model = PILAEClassifier(width=[40, 30], random_state=0, head=SHLN(width=100)).fit(X[:1000], y[:1000])
    report = model.report(X[1000:], y[1000:])
    assert set(report.figures) == {"spectrum", "reconstruction", "confusion", "calibration"}
    first, second = (each["error"] for each in report.summary["reconstruction"]["layers"])
    assert 0 < first < second < 1
    assert "data:image/png;base64" in report.figures["reconstruction"]
    assert "not the decoder of the table above" in report.to_html()
    with pytest.raises(ValueError, match="has 63 pixels, and rows have 64 columns"):
        model.report(X[1000:], y[1000:], image_shape=(7, 9))


def test_only_rows_that_look_like_images_are_drawn():
    X = np.random.default_rng(0).standard_normal((200, 100))
    model = StackedPILAE(width=[20], random_state=0).fit(X)
    assert "reconstruction" not in make_report(model, X).figures
    assert "reconstruction" in make_report(model, X, image_shape=(10, 10)).figures
    digits = load_digits(as_frame=True).data
    named = StackedPILAE(width=[20], random_state=0).fit(digits)
    assert "reconstruction" not in make_report(named, digits).figures


@pytest.mark.parametrize("scaling", ["none", "standard"])
def test_the_spectrum_is_of_scaled_rows(scaling):
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, 1.7e9 + 1e6 * np.arange(len(X))])  # a time in seconds
    model = PILAEClassifier(depth=0, input_scaling=scaling, head=SHLN(width=20)).fit(X, y)
    report = model.report(X, y)
    assert report.summary["spectrum"]["rank"] == 5
    assert "150 test rows, their columns brought to one scale, have rank 5 of 5." in report.to_markdown()


def test_a_file_with_its_columns_and_row_numbers(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = PILAERegressor(depth=0, random_state=0, head=SHLN(width=20)).fit(X[:300], y[:300])
    columns = [{"name": f"<i>{k}", "kind": "number", "width": 1, "missing": np.int64(k)} for k in range(63)]
    table = {"file": "houses.csv", "rows": 442, "target": "a|price", "columns": columns}
    numbers = 1000 + np.arange(142)
    report = make_report(model, X[300:], y[300:], code="pilae fit", table=table, numbers=numbers)
    report.save(tmp_path / "r.json")
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["table"]["columns"][62] == {"name": "<i>62", "kind": "number", "width": 1, "missing": 62}
    assert found["code"] == "pilae fit"
    worst = int(np.argmax(np.abs(y[300:] - model.predict(X[300:]))))
    assert found["test"]["worst"][0][:2] == [1000 + worst, y[300 + worst]]
    page, text = report.to_html(), report.to_markdown()
    for made in (page, text):
        assert "63 columns, which become 10 numbers." in made
        assert "and 3 more." in made
        assert "row of the file" in made
        assert "<i>6" not in made
    assert "&lt;i&gt;59" in page
    assert "&lt;i&gt;60" not in page
    assert "The file houses.csv of 442 rows; the target is a\\|price." in text
    with pytest.raises(ValueError, match="3 row numbers for 142 test rows"):
        make_report(model, X[300:], y[300:], numbers=[1, 2, 3])


def test_numbers_that_json_does_not_have(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = PILAERegressor(depth=0, random_state=0, head=SHLN(width=20)).fit(X[:300], y[:300])
    report = model.report(X[300:301], y[300:301])  # R2 of one row is undefined
    assert report.summary["test"]["score"] is report.summary["test"]["r2"] is None
    assert "One row has no R²" in report.to_html()
    model.fitted_ = replace(model.fitted_, loo_score=np.float64("nan"), stats=model.fit_stats_ | {"seconds": np.inf})
    training = json.loads(model.report().to_json())["training"]
    assert training["leave_one_out"] is None
    assert training["seconds"] == "inf"
    assert "inf" in model.report().to_html()


@pytest.mark.parametrize("name", ["r.pdf", "r.txt", "report"])
def test_an_unknown_ending_is_refused(iris, tmp_path, name):
    with pytest.raises(ValueError, match=r"ends in \.html, \.htm, \.md, \.json; got"):
        iris.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_short_names_stay_different():
    names = ["a" * 40, "a" * 41, "a" * 20 + "b" + "a" * 20, "short", "a b", "a\nb", "ä" * 13 + "…" + "ä" * 6]
    short = short_names(names, 20)
    assert len(set(short.values())) == len(names)
    assert max(map(len, short.values())) <= 20
    assert short["short"] == "short"
    assert short_names(["the first of many", "the second of many"], 12) == {
        "the first of many": "the firs…any",
        "the second of many": "the seco…any",
    }


def test_many_classes_with_long_names():
    rng = np.random.default_rng(0)
    y = np.arange(600) % 60
    X = rng.standard_normal((60, 5))[y] + 0.1 * rng.standard_normal((600, 5))
    names = np.array([f"{'long ' * 20}{k} {'name ' * 20}" for k in range(60)])[y]
    model = PILAEClassifier(depth=0, random_state=0, head=SHLN(width=100)).fit(X[:300], names[:300])
    report = model.report(X[300:], names[300:])
    assert "confusion" not in report.figures
    page = report.to_html()
    assert "With more than 40 classes the matrix of true and predicted ones is left out." in page
    listed = next(line for line in report.to_markdown().splitlines() if line.startswith("60 classes: "))
    assert listed.endswith(" and 40 more.")
    assert len(listed) < 20 * 33 + 40
    assert len(set(re.findall(r"<tr><td class=\"left\">(long [^<]*)</td>", page))) == 60


def test_a_class_without_rows_has_no_recall():
    X, y = load_iris(return_X_y=True)
    report = PILAEClassifier(depth=0, head=SHLN(width=20)).fit(X, y).report(X[:40], np.array(y[:40]))
    assert [each["recall"] for each in report.summary["test"]["classes"]][1:] == [None, None]
    assert "confusion" in report.figures


def test_heads_without_probabilities_and_label_sets():
    X, y = load_iris(return_X_y=True)
    report = PILAEClassifier(depth=1, head=RidgeClassifier()).fit(X, y).report(X, y)
    assert not {"log_loss", "calibration", "roc", "worst"} & set(report.summary["test"])
    assert report.summary["curves"] == []
    assert "are predicted right" in report.to_html()
    sets = np.column_stack([y > 0, y > 1]).astype(int)
    text = PILAEClassifier(depth=0, head=SHLN(width=20)).fit(X, sets).report(X, sets).to_markdown()
    assert "of whole sets of labels" in text
    assert "R²" not in text


@pytest.mark.parametrize("kind", ["frame", "sparse", "list"])
def test_rows_of_any_kind(kind):
    X, y = load_iris(return_X_y=True)
    rows = {"frame": pd.DataFrame(X).add_prefix("c"), "sparse": scipy.sparse.csr_array(X), "list": X.tolist()}[kind]
    model = PILAEClassifier(depth=1, random_state=0).fit(rows, y)
    with sklearn.config_context(transform_output="pandas"):
        report = model.report(rows, y)
    assert report.summary["test"]["score"] > 0.9
    assert len(report.summary["reconstruction"]["layers"]) == 1


def test_regression():
    X, y = load_diabetes(return_X_y=True)
    model = PILAERegressor(random_state=0).fit(X[:300], y[:300])
    report = model.report(X[300:], y[300:])
    assert {"residuals", "coverage"} <= set(report.figures)
    close(report.summary["test"]["r2"], model.score(X[300:], y[300:]), terms=142)
    wanted, found = zip(*report.summary["test"]["coverage"], strict=True)
    assert wanted == (0.5, 0.8, 0.9, 0.95)
    assert list(found) == sorted(found)
    assert "R²" in report.to_html()


def test_without_test_rows_and_with_other_heads():
    X, y = load_iris(return_X_y=True)
    for model in (PILAEClassifier(head="softmax", depth=1), PILAEClassifier(depth=0, head=SHLN(width=10))):
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
    assert depth.chosen == len(model.layers_)
    assert any(line.get_label() == f"depth chosen: {depth.chosen}" for line in depth.ax_.lines)
    first = {"round": 1, "chosen": False}
    rows = [first | {"depth": 0, "loss": 2.0}, first | {"depth": 1, "loss": 1.0}]
    last = {"round": 2, "chosen": True, "depth": 0, "loss": 0.1}  # from other rows: not on this axis
    assert DepthDisplay.computed([*rows, last]) == DepthDisplay([0, 1], [2.0, 1.0], 0)
    given = PILAEClassifier(depth=0, head=SHLN(width=20)).fit(X, y)
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
    close(overconfident.error, 1 - y.mean(), terms=20_000)


def test_importances_are_drawn_the_largest_first():
    display = ImportancesDisplay.computed(["a", "b", "$c$"], np.array([0.2, 0.5, 0.3]), most=2)
    assert display == ImportancesDisplay(["b", "$c$"], [0.5, 0.3], 1)
    ax = display.plot(ax=matplotlib.figure.Figure().subplots()).ax_
    assert [bar.get_width() for bar in ax.patches] == [0.5, 0.3]
    assert "1 more columns" in ax.get_xlabel()
    model = PILAEClassifier(depth=0, head=SHLN(width=20)).fit(*load_iris(return_X_y=True))
    summary = model.report().summary
    assert abs(sum(each["share"] for each in summary["importances"]) - 1) < tolerance(terms=4)
    assert summary["importances"][0]["share"] == max(model.feature_importances_)


# ------------------------------------------------------------------------------------- for the owner of the data


def mixed(count=400, seed=0):
    """A table of numbers, words, dates and gaps, and its targets: the price follows two columns, and no other."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(20, 200, count),
            "town": rng.choice(["Aachen", "Bonn", "Celle"], count),
            "nothing": rng.standard_normal(count),
        }
    )
    price = 8 * frame["size"] + frame["town"].map({"Aachen": 0.0, "Bonn": 200.0, "Celle": -200.0})
    frame.loc[::7, "nothing"] = np.nan
    return frame, price.to_numpy() + rng.standard_normal(count)


@pytest.fixture(scope="module")
def houses():
    frame, price = mixed()
    model = PILAERegressor(depth=0, random_state=0).fit(frame[:300], price[:300])
    columns = [{"name": name, "kind": "any", "width": 1, "missing": 0, "missing_where_trained": 14} for name in frame]
    columns[1]["width"] = 3
    table = {"file": "houses.csv", "rows": 400, "target": "price", "columns": columns}
    return make_report(model, frame[300:], price[300:], table=table, numbers=range(301, 401))


def test_columns_are_those_of_the_table(houses):
    found = {each["column"]: each for each in houses.summary["shuffled"]}
    assert [each["column"] for each in houses.summary["shuffled"]] == ["size", "town", "nothing"]
    assert found["nothing"]["loss"] < 0.01 < 0.1 < found["town"]["loss"]
    assert all(each["spread"] >= 0 for each in found.values())
    assert "missing in the file" in houses.to_markdown()
    assert {"shuffled", "curve0", "curve1"} <= set(houses.figures)


def test_curves_follow_what_the_target_follows(houses):
    size, town, _ = houses.summary["curves"]
    means = np.array(size["lines"]["prediction"])
    slope = np.polyfit(size["values"], means, 1)[0]
    assert abs(slope - 8) < 0.4
    assert town["values"] == ["Aachen", "Bonn", "Celle"]
    aachen, bonn, celle = town["lines"]["prediction"]
    assert abs(bonn - aachen - 200) < 20
    assert abs(aachen - celle - 200) < 20


def test_the_worst_rows_are_shown_with_their_values(houses):
    shown, frame = houses.summary["test"]["worst_values"], mixed()[0]
    assert shown["columns"] == ["size", "town", "nothing"]
    for (number, *_), values in zip(houses.summary["test"]["worst"], shown["rows"], strict=True):
        row = frame.iloc[number - 1]
        assert values == [row["size"], row["town"], None if np.isnan(row["nothing"]) else row["nothing"]]
    assert "with their values in the columns that matter most" in houses.to_html()


def test_what_was_searched_is_folded_and_explained():
    X, y = load_iris(return_X_y=True)
    page = PILAEClassifier(random_state=0).fit(X[::2], y[::2]).report(X[1::2], y[1::2]).to_html()
    assert page.index("How good it is") < page.index("Which columns matter") < page.index("Where it is wrong")
    assert page.index("Where it is wrong") < page.index("<details>") < page.index("What was searched")
    assert page.count("<details>") == page.count("</details>") >= 2
    assert "<dt>leave-one-out</dt>" in page


def verdict_of(model, X, y):
    return " ".join(model.report(X, y).summary["verdict"])


def test_the_verdict_names_linear_models_and_useless_ones():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    straight, curved, noise = X @ [1.0, 2.0, 3.0], np.sin(3 * X[:, 0]) + X[:, 1] ** 2, rng.standard_normal(600)
    plain = PILAERegressor(depth=0, head="ridge", input_scaling="standard").fit(X[:400], straight[:400])
    assert "This is a linear model" in verdict_of(plain, X[400:], straight[400:])
    network = PILAERegressor(depth=0, random_state=0).fit(X[:400], curved[:400])
    assert "It is better than a linear model" in verdict_of(network, X[400:], curved[400:])
    lost = PILAERegressor(depth=0, random_state=0).fit(X[:400], noise[:400])
    said = verdict_of(lost, X[400:], noise[400:])
    assert "That is no better than guessing" in said
    assert "linear model" not in said
    labels = np.where(noise > 0.5, "yes", "no")
    lost = PILAEClassifier(depth=0, random_state=0).fit(X[:400], labels[:400])
    said = verdict_of(lost, X[400:], labels[400:])
    assert "always saying “no” would be right for" in said
    assert "no better than guessing" in said
    summary = {"kind": "", "training": {"leave_one_out": None, "stale": False}}
    summary["test"] = {"rows": 50, "score": 0.02, "interval": [-0.1, 0.1], "guess": 0.0}
    assert "not surely better than guessing" in verdict(summary)[1]


def test_the_verdict_names_single_rows_that_make_up_the_error():
    X, y = load_diabetes(return_X_y=True)
    model = PILAERegressor(depth=0, random_state=0, head=SHLN(width=20)).fit(X[:300], y[:300])
    typo = y[300:].copy()
    typo[7] = 100_000.0
    report = model.report(X[300:], typo)
    assert "One row makes up" in " ".join(report.summary["verdict"])
    assert "guessing: the" not in " ".join(report.summary["verdict"])
    assert report.summary["test"]["worst"][0][0] == 7


def test_the_linear_model_beside_is_the_ridge_of_the_same_rows():
    X, y = load_diabetes(return_X_y=True)
    model = PILAERegressor(depth=0, head=SHLN(width=30), random_state=0).fit(X, y)
    ridge = PILAERegressor(depth=0, head="ridge", input_scaling="standard", random_state=0).fit(X, y)
    found = model.report().summary["training"]["linear"]
    assert abs(found["score"] - ridge.loo_score_) < 0.01  # each chooses its ridge by its own rows
    assert ridge.report().summary["training"]["linear"] is None
    assert model.partial_fit(X[:5], y[:5]).report().summary["training"]["linear"] == found
    assert model.fork().partial_fit(X, y).report().summary["training"]["linear"] is None


def test_intervals_of_scores():
    from pilae.report.verdict import accuracy_interval, r2_interval

    low, high = accuracy_interval(0.9, 100)  # Wilson's, from a table
    assert abs(low - 0.8256) < 1e-3
    assert abs(high - 0.9448) < 1e-3
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        y = rng.standard_normal(200)
        low, high = r2_interval(y + 0.5 * rng.standard_normal(200), y)
        covered += low <= 1 - 0.25 / 1.25 <= high
    assert 180 <= covered <= 199
    assert r2_interval(np.ones(50), np.zeros(50)) is None


def test_a_score_of_more_rows_than_are_shown():
    X, y = load_diabetes(return_X_y=True)
    model = PILAERegressor(depth=0, random_state=0, head=SHLN(width=20)).fit(X[:300], y[:300])
    report = make_report(model, X[300:400], y[300:400], whole={"rows": 142, "score": 0.456})
    assert report.summary["test"]["rows"] == 142
    assert report.summary["test"]["shown_rows"] == 100
    text = report.to_markdown()
    assert "of the first 100 of the 142 test rows" in text
    assert "R² is 0.456" in text


def test_coverage_of_every_fifth_and_curves_of_classes(iris):
    X, y = load_diabetes(return_X_y=True)
    report = PILAERegressor(depth=0, random_state=0).fit(X[:300], y[:300]).report(X[300:], y[300:])
    fifths = report.summary["test"]["fifths"]
    assert sum(each["rows"] for each in fifths) == 142
    assert all(before["to"] <= after["from"] for before, after in pairwise(fifths))
    hits = sum(each["rows"] * each["coverage"] for each in fifths) / 142
    assert abs(hits - dict(report.summary["test"]["coverage"])[0.9]) < tolerance(terms=142)
    assert "fifths" in report.figures
    assert len(iris.summary["test"]["roc"]) == 3
    assert all(0.9 < each["area"] <= 1 for each in iris.summary["test"]["roc"])
    assert "roc" in iris.figures


def test_numbers_of_a_column_have_as_many_decimals():
    rows = [["a", 0.5, 12000.0, 3], ["b", 0.8333, 1.5, None], ["c", None, 2.25, 1]]
    cells = [row["cells"] for row in table("", ["", "x", "y", "z"], rows).rows]
    assert [row[1] for row in cells] == ["0.5000", "0.8333", "–"]
    assert [row[3] for row in cells] == ["3", "–", "1"]
    tiny = [row["cells"][0] for row in table("", ["r"], [[1e-9], [0.1]]).rows]
    assert tiny == ["1.00e-09", "1.00e-01"]
    assert shares([1.0, 0.92764, None, -1e-9]) == ["1.000", "0.928", "–", "0.000"]
    assert as_given([12345, 2.5, 1999.0, None, True]) == ["12345", "2.5", "1999.0", "–", "yes"]
    assert as_given([2.123456, 0.001]) == ["2.1235", "0.0010"]
    assert as_given([0.5, 1e-7, 68823.0]) == ["0.5", "1e-07", "68823"]
    pair = [[5.0, 2.25], [-1e-7, 3.0]]
    assert [row["cells"] for row in table("", ["", ""], pair, ways=alike(pair, 0, 1, hide=True)).rows] == [
        ["5.00", "2.25"],
        ["0.00", "3.00"],
    ]


def test_the_network_begins_with_what_columns_become(houses):
    # one number for the size, three towns, the last column and where it has gaps
    found = int(re.search(r"a network (\d+)–", houses.lead())[1])
    assert found == houses.summary["training"]["inputs"] > 3
    assert f"3 columns, which become {found} numbers." in houses.to_markdown()


def test_a_number_has_one_output():
    X, y = load_diabetes(return_X_y=True)
    report = PILAERegressor(depth=0, head="ridge", input_scaling="standard").fit(X, y).report()
    assert "a network 10–1, trained" in report.lead()


def held_out(refitted):
    X, y = load_diabetes(return_X_y=True)
    model = PILAERegressor(depth=0, random_state=0, head=SHLN(width=20)).fit(X[:300], y[:300])
    columns = [{"name": f"c{k}", "kind": "number", "width": 1, "missing": 0} for k in range(10)]
    table = {"file": "t.csv", "rows": 442, "target": "y", "columns": columns, "held_out": True, "refitted": refitted}
    return make_report(model, X[300:], y[300:], table=table)


def test_rows_that_were_held_out_and_taken_in():
    text = held_out(True).to_markdown()
    assert "300 rows were trained on, and the model was judged by 142 others; then it took these in too" in text
    assert "so the saved model knows all 442." in text
    assert "training rows (saved model: 442): **300**" in text
    assert "which the saved model has not seen" in held_out(False).to_markdown()


@pytest.mark.parametrize("refit", [True, False])
def test_the_command_says_which_rows_the_saved_model_knows(refit, tmp_path, monkeypatch):
    frame, price = mixed()
    monkeypatch.chdir(tmp_path)
    frame.assign(price=price).to_csv("houses.csv", index=False)
    asked = ["fit", "houses.csv", "--target", "price", "--fast", "--quiet", "--report", "r.md"]
    assert cli.main([*asked, *([] if refit else ["--no-refit"])]) == 0
    text = (tmp_path / "r.md").read_text()
    assert ("so the saved model knows all 400." in text) == refit
    assert ("which the saved model has not seen." in text) != refit


def test_rows_held_out_of_the_same_file_are_not_said_to_come_from_elsewhere():
    summary = {"kind": "PILAERegressor", "training": {"rows": 80, "leave_one_out": 0.5, "stale": False}}
    summary["test"] = {"rows": 80, "score": 0.8, "interval": [0.7, 0.9], "guess": 0.0}
    assert "easier than the training rows" in " ".join(verdict(summary))
    assert "easier" not in " ".join(verdict(summary | {"table": {"held_out": True}}))
    summary["training"]["leave_one_out"] = 0.68  # may well be 0.72, and the test score too
    assert "easier" not in " ".join(verdict(summary))


def test_the_width_that_was_cut_is_told_from_the_width_that_was_tried():
    X, y = load_iris(return_X_y=True)
    model = PILAEClassifier(random_state=0).fit(X, y)
    text = model.report().to_markdown()
    assert model.width_path_ is not None
    assert f"cut to the best of all widths: {model.head_.width} neurons" in text


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_the_linear_model_is_tried_on_the_test_rows_too(kind, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    y = np.where(y > 140, "high", "low") if kind == "classes" else y
    estimator = PILAEClassifier if kind == "classes" else PILAERegressor
    model = estimator(depth=0, head=SHLN(width=30), random_state=0).fit(X[:300], y[:300])
    ridge = estimator(depth=0, head="ridge", input_scaling="standard", random_state=0).fit(X[:300], y[:300])
    summary = model.report(X[300:], y[300:]).summary
    linear = summary["test"]["linear"]
    assert abs(linear["score"] - ridge.score(X[300:], y[300:])) < 0.02  # each chooses its ridge by its own rows
    assert linear["interval"][0] < linear["score"] < linear["interval"][1]
    assert f"{linear['score']:.3f} on test rows" in " ".join(summary["verdict"])
    text = model.report(X[300:], y[300:]).to_markdown()
    assert f"| a linear model of the same columns | {linear['score']:.3f} | {linear['interval'][0]:.3f} to" in text
    model.save(tmp_path / "m.pilae")
    assert load(tmp_path / "m.pilae").report(X[300:], y[300:]).summary["test"]["linear"] == linear


def test_the_linear_model_of_columns_that_become_others():
    frame, price = mixed()
    model = PILAERegressor(depth=0, random_state=0, head=SHLN(width=20)).fit(frame[:300], price[:300])
    ridge = PILAERegressor(depth=0, random_state=0, head="ridge", input_scaling="standard").fit(
        frame[:300], price[:300]
    )
    linear = model.report(frame[300:], price[300:]).summary["test"]["linear"]
    assert abs(linear["score"] - ridge.score(frame[300:], price[300:])) < 1e-3


def test_a_linear_model_of_which_no_weights_are_known_is_not_tried():
    X, y = load_diabetes(return_X_y=True)
    model = PILAERegressor(depth=0, head=SHLN(width=30), random_state=0).fit(X[:300], y[:300])
    older = model.fitted_.linear._replace(coef=None, intercept=None)
    model.fitted_ = replace(model.fitted_, linear=older)
    summary = model.report(X[300:], y[300:]).summary
    assert summary["test"]["linear"] is None
    assert summary["training"]["linear"]["score"] == older.score
    model.fitted_.check()
    foreign = older._replace(coef=np.zeros((3, 1)), intercept=np.zeros(1))
    with pytest.raises(ValueError, match="shape"):
        replace(model.fitted_, linear=foreign).check()
    labels = np.where(y > 140, "high", "low")
    model = PILAEClassifier(depth=0, head=SHLN(width=30), random_state=0).fit(X[:300], labels[:300])
    model.partial_fit(X[:5], np.full(5, "middle"))
    assert model.report(X[300:], labels[300:]).summary["test"]["linear"] is None


def judged(own, beside, error=0.01, **test):
    linear = {"score": beside, "standard_error": error}
    training = {"rows": 300, "leave_one_out": own, "stale": False, "linear": linear}
    test = {"rows": 80, "score": own, "interval": [own - 0.05, own + 0.05], "guess": 0.0} | test
    return " ".join(verdict({"kind": "PILAERegressor", "training": training, "test": test}))


def test_the_verdict_puts_its_own_score_first():
    said = judged(0.876, 0.79, linear={"score": 0.8})
    assert "It is better than a linear model of the same columns (R² 0.876 against 0.790" in said
    assert "0.876 against 0.800 on test rows" in said
    assert "though not on the test rows" in judged(0.876, 0.79, linear={"score": 0.9})


def test_scores_that_look_the_same_are_not_better():
    said = judged(0.99999, 0.9999, error=1e-6)
    assert "This is a linear model in all but name" in said
    assert "better than" not in said
    assert "about as good" in judged(0.8002, 0.8, error=1e-6)


def test_the_verdict_on_a_linear_model_that_is_better_can_be_run():
    said = judged(0.5, 0.6)
    way = re.search(r"in Python (PILAERegressor\(.*?\)) fits one", said)[1]
    X, y = load_diabetes(return_X_y=True)
    assert eval(way).fit(X, y).report().summary["training"]["is_linear"]


def test_what_is_worse_than_guessing_is_called_so_and_not_praised():
    said = judged(-3.8, -5.0, interval=[-9.0, 0.3])
    assert "That is worse than guessing: do not use it." in said
    assert "better" not in said
    heavy = judged(-3.8, -5.0, interval=[-9.0, 0.3], heaviest={"rows": 1, "share": 0.98})
    assert "One row makes up 98% of the squared error" in heavy
    assert "That is worse than guessing: find out what these rows are" in heavy
    training = {"leave_one_out": -0.1, "stale": False, "linear": {"score": -0.3, "standard_error": 0.01}}
    assert "no better than guessing the mean" in verdict({"kind": "", "training": training})[1]


def test_markdown_has_tables_where_the_page_has_figures(houses, iris):
    text = houses.to_markdown()
    assert "small figures" not in text
    assert "small figures" in houses.to_html()
    lost = houses.summary["shuffled"][0]
    assert f"| size | {lost['loss']:.3f} | {lost['spread']:.3f} |" in text
    assert "The mean prediction when all rows have the same value in town." in text
    assert "R² lost when a column's values are dealt to other rows" not in houses.to_html()
    text = iris.to_markdown()
    assert "Rows by true class (down) and predicted class (across)." in text
    assert "Area under the ROC curve" in text
    assert "share of right predictions" in text
    without = PILAEClassifier(depth=0, random_state=0).fit(*load_iris(return_X_y=True)).report()
    assert "How much each column moves the outputs" in without.to_markdown()


def test_markdown_escapes_the_heads_of_tables():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.columns = ["a|b", "c*d", "e_f", "g"]
    text = PILAEClassifier(depth=0, random_state=0, head=SHLN(width=20)).fit(X[::2], y[::2]).report(X[1::2], y[1::2])
    text = text.to_markdown()
    assert "a\\|b" in text
    assert "a|b" not in text.replace("a\\|b", "")


def test_candidates_have_names_of_their_own():
    X, y = load_iris(return_X_y=True)
    search = PILAEClassifier(random_state=0).fit(X, y).search_
    for number in {row["round"] for row in search}:
        names = candidate_names([row for row in search if row["round"] == number])
        assert len(set(names)) == len(names)
    assert any("diagonal metric" in name for name in candidate_names(search))
    assert not any("none" in name for name in candidate_names(search))
    twins = [search[0] | {"length": None, "encoder_ridge": ridge} for ridge in (1.0, 2.0)]
    assert len(set(candidate_names(twins))) == 2


def drawn(draw, *given):
    with matplotlib.rc_context(STYLE):
        figure = matplotlib.figure.Figure(figsize=(5.2, 3.2), layout="constrained")
        ax = figure.subplots()
        draw(*given, ax=ax)
        _place_legend(ax)
        matplotlib.backends.backend_agg.FigureCanvasAgg(figure).draw()
    return ax


def test_legends_cover_nothing(iris):
    ax = drawn(_roc, iris.summary["test"]["roc"])
    legend = ax.get_legend().get_window_extent()
    assert legend.y0 >= ax.get_window_extent().y1
    assert 0 <= legend.x0 < legend.x1 <= ax.figure.bbox.x1
    assert legend.y1 <= ax.figure.bbox.y1


def test_shares_end_at_one():
    fifths = [{"coverage": share, "rows": 40} for share in (1.0, 0.9, 0.75, 1.0, 0.95)]
    ax = drawn(_fifths, fifths)
    assert ax.get_ylim()[1] == 1
    assert max(bar.get_segments()[0][:, 1].max() for bar in ax.collections) <= 1
    assert ax.get_ylim()[0] < 0.6  # the interval of 0.75 is inside
    ax = drawn(_coverage, np.array([[0.5, 0.31], [0.95, 1.0]]))
    assert ax.get_ylim() == (0.3, 1)


def test_curves_say_what_they_are_of_and_classes_have_one_colour(houses, iris):
    assert "mean prediction" in houses.figures["curve0"]
    assert "mean probability" in iris.figures["curve0"]
    assert "legend" not in iris.figures["curve0"]
    section = next(each for each in iris.sections() if each.title == "Which columns matter")
    assert [name for name, _ in section.keys] == sorted(HOSTILE)
    assert len({colour for _, colour in section.keys}) == 3
    X, y = load_digits(return_X_y=True)
    X = pd.DataFrame(X).add_prefix("c")
    many = PILAEClassifier(depth=0, random_state=0, head=SHLN(width=50)).fit(X[:500], y[:500]).report(X[500:], y[500:])
    assert len({tuple(curve["lines"]) for curve in many.summary["curves"]}) == 1


def test_a_model_that_learnt_more_says_what_its_scores_are_of():
    X, y = load_diabetes(return_X_y=True)
    model = PILAERegressor(depth=0, random_state=0, head=SHLN(width=20)).fit(X[:300], y[:300])
    text = model.partial_fit(X[300:400], y[300:400]).report(X[400:], y[400:]).to_markdown()
    assert "leave-one-out R² of the first rows" in text
    assert "It is of the rows of the first fit: others have come or gone since." in text
    assert "before later changes" not in text


def test_a_perfect_log_loss_is_nothing():
    classes, y = np.array(["a", "b"]), np.array(["a", "b", "b"])
    found = tested.tested_classes(classes, y, y, np.eye(2)[[0, 1, 1]], np.arange(3))
    assert found["log_loss"] == 0
    assert not np.signbit(found["log_loss"])
