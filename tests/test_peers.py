"""The comparison with peers: which tables, how they are read, a run that goes on, ranks and the page made from them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from studies import store
from studies.tables import collection, peer_pages, peers, ranks
from studies.tables.collection import CLASSIFICATION, REGRESSION, TABLES, Table

FRAME = pd.DataFrame(
    {
        "rownames": range(6),
        "kind": ["a", "b", None, "a", "b", "a"],
        "size": [1, 2, 3, 4, 5, 6],
        "code": [1, 1, 2, 2, 3, 3],
        "log_price": [0.1] * 6,
        "price": [1.0, 2.0, 3.0, None, 5.0, 6.0],
    }
)


def cell(*scores, **others):
    return {str(k): {"score": score, "seconds": 0.5, "commit": "abc"} | others for k, score in enumerate(scores)}


@pytest.fixture
def results():
    """Three models on five tables of classes and one of numbers, where one of them failed and one took long."""
    tables = {
        f"t{k}": {"rows": 200, "columns": 4, "categories": k, "missing": False, "classes": 3}
        | {
            "models": {
                "pilae": cell(0.9, 0.8, log_loss=0.2, loo=0.875),
                "SVM": cell(0.8, 0.8, 0.1),
                "linear": cell(0.7, 0.7, log_loss=0.4),
            }
        }
        for k in range(5)
    }
    failed = {"0": {"failed": "ValueError: why", "commit": "abc"}}
    tables["n"] = {"rows": 3000, "columns": 4, "categories": 0, "missing": True} | {
        "models": {"pilae": cell(0.4, loo=0.5), "SVM": cell(0.5, seconds=99.5), "linear": failed}
    }
    models = {name: {"package": "scikit-learn", "version": "1.9"} for name in ("pilae", "SVM", "linear")}
    machine = {"commit": "abc", "cores": 2, "cpu": "a processor"}
    return {"models": models, "tables": tables, "command": "python -m studies.tables.peers", "machine": machine}


def test_the_tables_keep_their_rules():
    assert len(CLASSIFICATION) >= 20
    assert len(REGRESSION) >= 14
    assert len({table.source for table in TABLES.values()}) == len(TABLES)
    kept_for_judging = ("spam", "Caravan", "biopsy", "fgl", "Pima", "Titanic", "Auto", "Hitters", "concrete", "iris")
    assert not [name for name in kept_for_judging if any(name in table.source for table in TABLES.values())]


def test_columns_are_numbers_or_categories_and_nothing_gives_the_target_away():
    X, y = collection.prepared(FRAME, Table("made/up", "price", without=("log_price",), codes=("code",)), classes=False)
    assert list(X) == ["kind", "size", "code"]
    assert [str(kind) for kind in X.dtypes] == ["category", "float64", "category"]
    assert list(X["kind"]) == ["a", "b", "missing", "b", "a"]  # the row without a target is not there
    np.testing.assert_array_equal(y, [1, 2, 3, 5, 6])
    X, y = collection.prepared(FRAME, Table("made/up", "kind", only=("size",)), classes=True)
    assert list(X) == ["size"]
    np.testing.assert_array_equal(y, [0, 1, 0, 1, 0])
    assert collection.shape(X, y, True) == {"rows": 5, "columns": 1, "categories": 0, "missing": False, "classes": 2}


def test_columns_for_models_without_categories():
    X = FRAME[["size", "price"]].assign(kind=FRAME["kind"].fillna("missing").astype("category"))
    plain = peers.numbers(scaled=False).fit_transform(X)
    np.testing.assert_array_equal(plain[3], [4, 3, 1, 0, 0])  # the median of the prices, and 0 and 1
    scaled = peers.numbers(scaled=True).fit_transform(X)
    np.testing.assert_allclose(scaled[:, :2].std(axis=0), 1)
    np.testing.assert_array_equal(scaled[:, 2:], plain[:, 2:])
    assert str(peers.filled().fit_transform(X)["kind"].dtype) == "category"


def test_a_comparison_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.standard_normal(60), "b": rng.standard_normal(60)})
    y, fits = (X["a"] > 0).to_numpy().astype(int), []

    class Counted(LogisticRegression):
        def fit(self, X, y):
            fits.append(len(X))
            return super().fit(X, y)

    class Broken(LinearRegression):
        def fit(self, X, y):
            raise ValueError("of two\nlines")

    monkeypatch.setattr(collection, "load", lambda name, rows: (X, y))
    monkeypatch.setattr(peers, "load", collection.load)
    monkeypatch.setattr(peers, "one_thread", lambda: None)
    monkeypatch.setattr(peers, "results_of", lambda study, name: tmp_path / "peers.json")
    monkeypatch.setattr(peers, "PEERS", {"linear": peers.Peer(Counted, Broken, "scikit-learn")})

    def run(*words):
        monkeypatch.setattr(peers.sys, "argv", ["peers", *words])
        fits.clear()
        peers.main()
        return store.read(tmp_path / "peers.json")

    found = run("--tables", "frogs", "Carseats", "--folds", "1")
    assert fits == [60, 48]  # the first is not timed
    assert found["tables"]["frogs"]["models"]["linear"]["0"].keys() == {"score", "seconds", "log_loss", "commit"}
    assert found["tables"]["Carseats"]["models"]["linear"]["0"]["failed"] == "ValueError: of two"
    found = run("--tables", "frogs", "--folds", "2")
    assert fits == [60, 48]
    assert set(found["tables"]["frogs"]["models"]["linear"]) == {"0", "1"}
    assert "Carseats" in found["tables"]
    monkeypatch.setattr(peers, "PATIENCE", 0)
    run("--tables", "frogs", "--folds", "3")
    assert fits == [60]  # one fold took too long for the others
    with pytest.raises(SystemExit, match="up to 3000 rows"):
        run("--rows", "100")


def test_mean_ranks_and_the_difference_that_counts(results):
    found = ranks.compare(results, True)
    assert found.models == ["pilae", "SVM", "linear"]
    np.testing.assert_allclose(found.scores[0], [0.85, 0.8, 0.7])  # the third fold, which one has, does not count
    np.testing.assert_array_equal(found.ranks, [1, 2, 3])
    assert ranks.compare(results, True, "log_loss").models == ["pilae", "linear"]
    assert ranks.compare(results, False).models == ["pilae", "SVM"]
    assert ranks.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)  # an example of Demšar's
    assert ranks.together(np.array([1.0, 1.5, 2.2, 4.0]), 1.0) == [(1.0, 1.5), (1.5, 2.2)]
    assert ranks.together(np.array([1.0, 3.0]), 1.0) == []


def test_the_page_of_a_comparison(results, monkeypatch, tmp_path):
    monkeypatch.setattr(peer_pages, "results", lambda: results)
    page = {name: make() for name, make in peer_pages.PAGE.items()}
    assert (
        "| **pilae** | 1.00 | 0.8500 | 0.8500 | 5 | 0.200 | 1.00 | 0.5 | 0.5 |" in page["peers_summary_classification"]
    )
    assert "| SVM | 2.00 | 0.8000 | 0.8000 | 0 | - | - | 0.5 | 0.5 |" in page["peers_summary_classification"]
    assert "| **pilae** | 1.17 | 5 | 3 |" in page["peers_both"]
    assert "| SVM | 0 | 0 | 1 | -0.1000 | n (-0.1000) |" in page["peers_against_regression"]
    assert "linear has 0 of 1 tables and is not ranked." in page["peers_summary_regression"]
    assert "SVM on n needed 100 seconds for one fold and got no further one." in page["peers_summary_regression"]
    assert "linear on n (1 of 1 folds) failed: ValueError: why." in page["peers_summary_regression"]
    assert "| t2 | 200 x 4, 2 categorical, 3 classes | **0.8500** | 0.8000 |" in page["peers_tables_classification"]
    assert "| n | R² | 0.5000 | 0.4000 | +0.1000 |" in page["peers_estimates"]
    ranks.figure(results, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"ranks.svg", "ranks.png"}


def test_the_page_without_pilae(results, monkeypatch):
    results["models"].pop("pilae")
    for table in results["tables"].values():
        table["models"].pop("pilae")
    monkeypatch.setattr(peer_pages, "results", lambda: results)
    assert peer_pages.against(True) == peer_pages.estimates() == "pilae is not measured yet."
    assert peer_pages.summary(True).startswith("| model | mean rank | mean accuracy | median |")
