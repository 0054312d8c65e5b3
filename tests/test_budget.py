"""A search that is given little time ends with the best so far; progress says which candidate of how many."""

import itertools
import json
import math
import re

import numpy as np
import pytest

import pilae
from helpers import blobs
from pilae import PILAEClassifier, PILAERegressor
from pilae._base import budget as budgets
from pilae._network.structure import Plan
from pilae.cli import main
from pilae.plot import DepthDisplay


def waves(n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(n)


def tried(model) -> list[dict]:
    return [row for row in model.search_ if row["loss"] is not None]


def without_seconds(table: list[dict]) -> list[dict]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in table]


@pytest.fixture
def looks(monkeypatch):
    """A clock that goes on by one whenever it is looked at: a budget of k seconds is one of k looks."""
    clock = itertools.count()
    monkeypatch.setattr(budgets.Budget.__init__, "__defaults__", (math.inf, lambda: float(next(clock))))


def test_with_no_time_the_simplest_network_is_fitted_to_all_rows():
    X, y = waves()
    with pilae.time_budget(0):
        model = PILAERegressor().fit(X, y)
    [row] = tried(model)
    assert row["head"] == "ridge"
    assert row["chosen"]
    assert model.fit_stats_["rows"] == len(X)
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.predict_interval(X)).all()


def test_a_budget_that_is_not_used_up_changes_nothing():
    X, y = blobs(300)
    plain = PILAEClassifier().fit(X, y)
    with pilae.time_budget(math.inf):
        model = PILAEClassifier().fit(X, y)
    assert without_seconds(model.search_) == without_seconds(plain.search_)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_it_ends_with_leaving_the_block():
    X, y = blobs(60)
    with pytest.raises(ZeroDivisionError), pilae.time_budget(0):
        1 / 0  # noqa: B018
    assert len(tried(PILAEClassifier().fit(X, y))) > 1


@pytest.fixture(scope="module")
def whole() -> list[dict]:
    """The table of a search of two rounds that has all the time."""
    return PILAERegressor(target_scaling="none").fit(*waves()).search_


def cut_short(looks_at_clock: int) -> list[dict]:
    with pilae.time_budget(looks_at_clock):
        return PILAERegressor(target_scaling="none").fit(*waves()).search_


def same(one: dict, other: dict) -> bool:
    """Whether two rows are of one candidate."""
    return all(one[name] == other[name] for name in (*Plan._fields, "round"))


def test_what_was_tried_is_what_a_whole_search_tries_first(looks, whole):
    table = cut_short(9)
    said = [row for row in table if row["loss"] is not None]
    left = table[len(said) :]
    assert 1 < len(said) < len(whole)
    assert without_seconds(said) == without_seconds(
        [row | {"chosen": mine["chosen"]} for row, mine in zip(whole, said, strict=False)]
    )
    assert sum(row["chosen"] for row in said) == 1
    assert same(left[0], whole[len(said)])  # what would have come next
    assert not any(row["chosen"] for row in left)
    assert {tuple(row) for row in table} == {tuple(said[0])}  # one table


def test_a_round_that_did_not_come_to_the_winner_of_the_last_one_decides_nothing(looks, whole):
    first, again = ([row for row in whole if row["round"] == number] for number in (1, 2))
    best = min((row for row in first if not row["brittle"]), key=lambda row: row["loss"])
    place = next(k for k, row in enumerate(again) if same(row | {"round": 1}, best))
    assert place > 0  # else the case says nothing
    cuts = set()
    for more in range(place + 3):
        said = [row for row in cut_short(len(first) + more) if row["loss"] is not None]
        [chosen] = [row for row in said if row["chosen"]]
        cuts.add(cut := len(said) - len(first))
        assert chosen["round"] == (2 if cut > place else 1)
        assert cut > place or same(chosen, best)
    assert {0, place, place + 1} <= cuts


@pytest.mark.parametrize(("seconds", "words"), [(-1, "-1"), (math.nan, "nan"), ("1", "'1'"), (True, "True")])
def test_a_wrong_budget_is_one_sentence(seconds, words):
    with pytest.raises(ValueError, match=f"^A time budget must be a number of seconds of at least 0, not {words}.$"):
        pilae.time_budget(seconds).__enter__()


def test_images_stop_too():
    rng = np.random.default_rng(0)
    images, y = rng.random((60, 8, 8)), np.arange(60) % 3
    with pilae.time_budget(0):
        model = pilae.ConvPILAE(max_features=40).fit(images, y)
    assert len(tried(model)) == 1
    assert len(model.search_) > 1
    assert model.transform(images).shape[0] == 60
    assert "more candidates would have come" in model.report().to_markdown()


def test_a_budget_holds_for_the_scale_of_targets_too():
    X, y = waves()
    heavy = np.exp(2 * y)
    assert PILAERegressor().fit(X, heavy).target_scaling_ == "asinh"
    with pilae.time_budget(0):
        assert PILAERegressor().fit(X, heavy).target_scaling_ == "none"
        assert PILAERegressor(target_scaling="asinh").fit(X, heavy).target_scaling_ == "asinh"


def test_files_reports_and_figures_of_a_search_that_was_cut_short(tmp_path):
    X, y = waves()
    with pilae.time_budget(0):
        model = PILAERegressor().fit(X, y)
    model.save(tmp_path / "m.pilae")
    assert pilae.load(tmp_path / "m.pilae").search_ == model.search_
    text = model.report(X, y).to_markdown()
    count = sum(row["loss"] is None for row in model.search_)
    assert f"at least {count} more candidates would have come" in text
    assert "Not tried" in text
    assert DepthDisplay.computed(model.search_).depths == [0]


# ------------------------------------------------------------------------------------------------ from the shell


def csv(path, n: int = 200):
    X, y = waves(n)
    lines = [",".join(map(str, row)) for row in np.column_stack([X, y]).round(4)]
    path.write_text("\n".join(["a,b,c,d,e,y", *lines]) + "\n")
    return str(path)


def test_the_command_says_what_was_not_tried(tmp_path, capsys):
    table, model = csv(tmp_path / "t.csv"), str(tmp_path / "m.pilae")
    page = str(tmp_path / "r.md")
    words = ["fit", table, "--target", "y", "-o", model, "--quiet"]
    assert main([*words, "--budget", "0", "--report", page]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^1 networks? tried, then the time was used up: at least \d+ more were not$", said, re.M)
    assert "more candidates would have come" in (tmp_path / "r.md").read_text()
    assert main([*words, "--budget", "0", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["candidates"] == 1
    assert result["candidates_not_tried"] > 1
    assert main([*words, "--budget", "inf", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["candidates"] > 1
    assert result["candidates_not_tried"] == 0
    assert main([*words, "--budget", "-2"]) != 0
    assert "--budget must be at least 0 seconds, not -2." in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------- progress


def places(err: str) -> list[tuple[int, int, int]]:
    """(round, candidate, of how many) of every line that says so."""
    found = re.findall(r"(?:round (\d+) of \d+, )?candidate (\d+) of (\d+): ", err)
    return [(int(round_ or 1), int(k), int(n)) for round_, k, n in found]


@pytest.mark.parametrize("case", ["classes", "numbers", "given"])
def test_progress_counts_candidates_of_each_round(capsys, case):
    X, y = blobs(150) if case == "classes" else waves()
    if case == "classes":
        model = PILAEClassifier(verbose=1).fit(X, y)
    elif case == "numbers":
        model = PILAERegressor(verbose=1, target_scaling="none").fit(X, y)
    else:
        head = pilae.SHLN(width=20, metric="labels")
        model = PILAERegressor(depth=0, head=head, verbose=1, target_scaling="none").fit(X, y)
    shown, table = places(capsys.readouterr().err), model.search_
    for number in {row["round"] for row in table}:
        of_round = [(k, n) for round_, k, n in shown if round_ == number]
        count = sum(row["round"] == number for row in table)
        if not of_round:  # fitted to all rows to see whether a promise was kept: no candidates of the search
            continue
        assert sorted({k for k, _ in of_round}) == list(range(1, count + 1))
        assert all(k <= n for k, n in of_round)
        assert of_round[-1] == (count, count)  # the last one knows that nothing follows


def test_a_look_ahead_grows_nothing_and_notes_nothing():
    X, y = waves(400)
    quiet = PILAERegressor(target_scaling="none").fit(X, y)
    loud = PILAERegressor(target_scaling="none", verbose=1).fit(X, y)
    assert without_seconds(quiet.search_) == without_seconds(loud.search_)
    assert quiet.n_passes_ == loud.n_passes_
