"""The study of mixed tables: how they are read, a run that goes on, and the page made from what it found."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from studies import store
from studies.data import Split
from studies.tables import mixed, mixed_pages, mixed_tables
from studies.tables.mixed_tables import CLASSES, MESSY, NUMBERS, TABLES, Mixed


def frame(n: int = 60) -> pd.DataFrame:
    """Words, free text, a date, gaps, an id; classes and numbers to predict."""
    rng = np.random.default_rng(0)
    size, kind = rng.standard_normal(n), rng.choice(["a", "b"], n)
    said = [f"number {k} of {word} street" for k, word in enumerate(rng.choice(["oak", "elm", "ash"], n))]
    day = [f"2024-01-{1 + k % 28:02d}" for k in range(n)]
    columns = {"id": range(n), "kind": kind, "size": np.where(rng.random(n) < 0.2, np.nan, size), "day": day}
    price = 10 + size + 2 * (kind == "b")
    return pd.DataFrame(columns | {"address": said, "price": price, "dear": np.where(price > 11, "yes", "no")})


def test_the_tables_keep_their_rules():
    assert len(CLASSES) + len(NUMBERS) >= 16
    assert len(TABLES) == len(CLASSES) + len(NUMBERS) + len(MESSY)
    assert all(table.classes for table in CLASSES.values())
    assert not any(table.classes for table in NUMBERS.values())
    kept_for_judging = ("spam7", "Caravan", "biopsy", "fgl", "Pima", "Auto", "Hitters", "concrete", "iris")
    assert not [name for name in kept_for_judging if any(name in table.source for table in TABLES.values())]


def test_tables_are_what_their_csv_file_says():
    given = frame().assign(price=lambda rows: rows["price"].where(rows["id"] > 3))
    X, y = mixed_tables.prepared(given, Mixed("made/up", "price", ("dear",), classes=False), rows=50)
    assert len(X) == len(y) == 50
    assert list(X) == ["id", "kind", "size", "day", "address"]
    assert X["id"].min() > 3  # rows without a target are left out
    assert not np.isnan(y).any()
    assert X["size"].isna().any()
    again, _ = mixed_tables.prepared(given, Mixed("made/up", "price", ("dear",), classes=False), rows=50)
    pd.testing.assert_frame_equal(X, again)
    made = Mixed("made/up", "price", ("dear",), make=lambda price: (price > 11).where(price.notna()))
    assert set(mixed_tables.prepared(given, made, rows=99)[1]) == {"True", "False"}
    late = mixed_tables.late(pd.Series([20.0, 3.0, np.nan]))
    assert late[:2].tolist() == ["late", "in time"]
    assert pd.isna(late[2])


def test_folds_are_the_same_for_all_and_others_in_each_repeat():
    X, y = mixed_tables.prepared(frame(), Mixed("made/up", "dear", ("price",)), rows=99)
    first, again, other = (
        [fold.X_test["id"].tolist() for fold in mixed_tables.folds(X, y, True, r)] for r in (0, 0, 1)
    )
    assert first == again
    assert first != other
    assert sorted(row for part in first for row in part) == sorted(X["id"])


def test_a_folder_that_is_not_here_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("PILAE_DATA", str(tmp_path))
    options = mixed.arguments(["--tables", "cars"])
    [line] = mixed.run({"tables": {}}, options)
    assert "cars: not here" in line


@pytest.fixture
def made_up(monkeypatch, tmp_path):
    """Two tables in place of the real ones, and results of their own."""
    tables = {"classes": Mixed("made/up", "dear", ("price",)), "numbers": Mixed("made/up", "price", ("dear",), False)}
    for module in (mixed, mixed_tables):
        monkeypatch.setattr(module, "TABLES", tables)
    monkeypatch.setattr(mixed_tables, "read", lambda table: frame())
    monkeypatch.setattr(mixed_tables, "FOLDS", 2)
    monkeypatch.setattr(mixed, "one_thread", lambda: None)
    path = tmp_path / "mixed.json"
    for module in (mixed, mixed_pages):
        monkeypatch.setattr(module, "results_of", lambda *names: path)
    return path


def test_a_run_goes_on_where_it_was_stopped(made_up, monkeypatch, capsys):
    asked = ["mixed", "--parts", "folds", "--tables"]
    monkeypatch.setattr(sys, "argv", [*asked, "classes"])
    mixed.main()
    first = store.read(made_up)["tables"]["classes"]
    assert set(first["folds"]) == set(mixed.MODELS)
    for model in mixed.MODELS:
        assert [fold["failed"] for fold in first["folds"][model].values() if "failed" in fold] == []
        assert sorted(first["folds"][model]) == ["0.0", "0.1"]
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", [*asked, "classes", "numbers", "--models", "pilae"])
    mixed.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("numbers") for line in lines)
    said = store.read(made_up)["tables"]
    assert said["classes"] == first
    assert {len(fold["coverage"]) for fold in said["numbers"]["folds"]["pilae"].values()} == {5}
    monkeypatch.setattr(sys, "argv", [*asked, "classes", "--rows", "40"])
    with pytest.raises(SystemExit, match="tables of up to 5000 rows"):
        mixed.main()


def test_what_fails_is_written_down(made_up, monkeypatch):
    def refuse(*given):
        raise ValueError("no such thing\nat all")

    monkeypatch.setattr(mixed, "measure", refuse)
    options = mixed.arguments(["--parts", "folds", "--models", "linear"])
    results = {"tables": {}}
    assert len(list(mixed.run(results, options))) == 4
    assert results["tables"]["numbers"]["folds"]["linear"]["0.0"]["failed"] == "ValueError: no such thing"


def test_losses_of_classes_by_name():
    class Model:
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            return np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])

    y = np.array(["0", "1", "2"], object)  # the last one was not in the training part
    fold = Split(pd.DataFrame(), y, pd.DataFrame(), y)
    found = mixed.of_classes(Model(), np.array([0, 1, 0]), fold)
    assert found["score"] == pytest.approx(2 / 3)
    assert found["loss"] == pytest.approx(-(np.log(0.5) + np.log(0.75)) / 2)


def test_numbers_and_their_intervals_by_fifths():
    y = np.arange(10.0)
    found = mixed.of_numbers(y + 1, y)
    assert found["loss"] == 1
    assert found["score"] == pytest.approx(1 - 1 / np.var(y))
    ends = np.column_stack([y - 1, np.where(y < 6, y + 1, y - 0.5)])
    assert mixed.coverage(ends, y, y) == [[2, 2], [2, 2], [2, 2], [0, 2], [0, 2]]
    assert mixed_pages.is_covered(88, 100)
    assert mixed_pages.is_covered(16, 20)  # two standard errors of few rows
    assert not mixed_pages.is_covered(720, 1000)


def test_the_script_that_stands_beside_the_command(tmp_path):
    frame().drop(columns="dear").rename(columns={"price": mixed.TARGET}).to_csv(tmp_path / "t.csv", index=False)
    words = [
        sys.executable,
        "-W",
        "ignore",
        mixed.SCRIPT,
        tmp_path / "t.csv",
        mixed.TARGET,
        tmp_path / "m",
        "regressor",
    ]
    subprocess.run([str(word) for word in words], check=True)
    assert (tmp_path / "m").stat().st_size > 1000


def page_results() -> dict:
    def fold(score, **others):
        return {"score": score, "loss": 0.5, "seconds": 2.0, "standard_error": 0.01, "commit": "abc"} | others

    def folds(*scores, **others):
        return {f"0.{k}": fold(score, **others) for k, score in enumerate(scores)}

    shape = {"rows": 900, "columns": 8, "words": 3, "missing": True}
    command = {
        "pilae": {"seconds": 4.0, "megabytes": 0.5, "load_seconds": 0.1},
        "boosting": {"seconds": 2.0, "megabytes": 1.5, "load_seconds": 0.2},
        "commit": "abc",
    }
    seeds = {str(k): {"score": 0.8 + 0.01 * k, "standard_error": 0.001} for k in range(10)}
    covered = [[90, 100]] * 4 + [[70, 100]]
    tables = {
        "c": shape
        | {"classes": 3, "command": {"all": command}, "seeds": seeds | {"two threads": seeds["1"]}}
        | {
            "folds": {
                "pilae": folds(0.9, 0.8),
                "boosting": folds(0.8, 0.8),
                "linear": {"0.0": {"failed": "ValueError: why", "commit": "abc"}},
            }
        },
        "n": shape
        | {
            "folds": {
                "pilae": folds(0.4, 0.5, coverage=covered),
                "boosting": folds(0.5, 0.6),
                "linear": folds(0.4, 0.4),
            }
        },
    }
    machine = {"commit": "abc", "cores": 2, "cpu": "a processor"}
    versions = {"pilae": "0.1"}
    return {"tables": tables, "command": "python -m studies.tables.mixed", "machine": machine, "versions": versions}


def test_the_page(made_up):
    made_up.write_text(json.dumps(page_results()))
    page = {name: make() for name, make in mixed_pages.PAGE.items()}
    assert "| skrub's boosting | 2 | 1 | 1 | -2.5 | -2.5 | n (-10.0) |" in page["mixed_summary"]
    assert "2 tables have fewer than five folds so far." in page["mixed_summary"]
    classes, numbers = page["mixed_scores_classification"], page["mixed_scores_regression"]
    assert (
        "| c | 900 x 8, 3 of words, gaps, 3 classes | **0.8500** | 0.8000 | - | +5.0 (2 folds) | 0.5, 0.5, - | 2, 2, -"
        in classes
    )
    assert "linear failed on c (1 of 1 folds): ValueError: why." in classes
    assert "| n | 900 x 8, 3 of words, gaps | 0.4500 | **0.5500** | 0.4000 | -10.0 (2 folds) |" in numbers
    assert "| c | 4.00 | 2.00 | 2.0 | 0.50 | 1.50 | 0.10 | 0.20 |" in page["mixed_command"]
    assert "Within 3 times the script on 1 of 1 tables; median 2.0." in page["mixed_command"]
    assert "| n | 0.860 | 0.90 | 0.90 | 0.90 | 0.90 | **0.70** |" in page["mixed_coverage"]
    assert "4 of 5 fifths" in page["mixed_coverage"]
    assert "| c | 10 | 0.8000 to 0.8900 | **9.0** | 0.2 | 1.00 |" in page["mixed_seeds"]
    said = mixed_pages.choose_mixed()
    assert "half a point below or better on 1 of 2 tables, -2.5 points on the median one" in said
    assert "Boosting wins most clearly on n (-10.0)." in said


def test_the_page_before_anything_is_measured(made_up):
    assert {make() for make in mixed_pages.PAGE.values()} == {"Not measured yet."}
    assert mixed_pages.choose_mixed() == "Not measured yet."


def test_a_mean_that_rests_on_one_table_and_tables_that_were_in_sight_are_said(made_up):
    said = page_results()
    folds = said["tables"]["c"]["folds"]
    for k in range(5):
        folds["pilae"][f"0.{k}"] = folds["pilae"]["0.0"] | {"score": 0.9}
        folds["boosting"][f"0.{k}"] = folds["pilae"]["0.0"] | {"score": 0.5 + 0.01 * k}
    said["tables"]["cars"] = said["tables"]["n"]
    made_up.write_text(json.dumps(said))
    page = mixed_pages.mixed_summary()
    assert "rests on c (+38.0), where boosting breaks down; without it it is -10.0." in page
    assert "minus half a point or better on 1 of 2, median +14.0." in page
    assert "+38.0 ± 0.7" in mixed_pages.mixed_scores(True)
