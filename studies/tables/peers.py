"""pilae beside what people would pick, on public tables with and without categories.

    python -m studies.tables.peers [--models name ...] [--tables name ...] [--folds 5] [--rows 3000]

Run it in an environment of its own (`make study-peers`, packages in studies/tables/peers.txt). The tables and the rules
they were chosen by are in `studies.tables.collection`. Five folds (stratified for classes, `random_state=0`), of which
the first `--folds` are run; tables of more than `--rows` rows are cut to that many by a seeded shuffle. Every model has
one thread. Seconds are those of fit and predict together, with whatever is done to the columns.

All models are what their packages give without arguments (300 trees in the forest, seeds set), behind the columns that
their authors recommend. Models that take categories and missing values get the table as it is: LightGBM, CatBoost,
HistGradientBoosting; RealMLP too, with missing numbers filled by the median, as it takes none. The others get missing
numbers filled by the median and categories as 0 and 1, one column each; all but pilae and the forest standardised
numbers too. SVR and MLPRegressor learn a standardised target, and so does xRFM, which has no intercept; it
holds a fifth of the training rows out by itself, as its `fit` asks for. SVC has no probabilities, and so no log-loss.

Writes studies/tables/results/peers.json, fold by fold, so that it can be stopped and continued: what is there is
measured again only with `--again`. A model that fails is written down with its error; one that needs more than a
minute for a fold has no other fold of that table.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd

from studies.data import Split
from studies.measure import describe, seconds_of, version
from studies.store import read, results_of, write
from studies.tables.collection import CLASSIFICATION, TABLES, folds, load, shape

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
"""What the libraries look at when they are loaded; pilae's own threads go by the last."""

PATIENCE = 60
"""Seconds of a fold after which a model's other folds of that table are left out: the page says which these are."""


class Model(Protocol):
    """What every model can do; classifiers have predict_proba, most of them."""

    def fit(self, X, y): ...

    def predict(self, X) -> np.ndarray: ...


class Peer(NamedTuple):
    classifier: Callable[[], Model]
    regressor: Callable[[], Model]
    package: str
    """Whose version is written down."""


# --- columns ---


def numbers(*, scaled: bool):
    """Numbers with missing ones filled, categories as 0 and 1; standardised numbers where `scaled`."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    fill = SimpleImputer(strategy="median", keep_empty_features=True)
    return make_column_transformer(
        (make_pipeline(fill, StandardScaler()) if scaled else fill, make_column_selector(dtype_include="number")),
        (
            OneHotEncoder(handle_unknown="ignore", drop="if_binary", sparse_output=False),
            make_column_selector(dtype_include="category"),
        ),
    )


def filled():
    """The table with its categories, and the median for missing numbers."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer

    fill = SimpleImputer(strategy="median", keep_empty_features=True)
    columns = make_column_transformer(
        (fill, make_column_selector(dtype_include="number")), remainder="passthrough", verbose_feature_names_out=False
    )
    return columns.set_output(transform="pandas")


def behind(columns, model, *, scaled_target: bool = False) -> Model:
    """A model behind its columns."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if scaled_target:
        model = TransformedTargetRegressor(model, transformer=StandardScaler())
    return make_pipeline(columns, model)


# --- models ---


def pilae(kind: str):
    def make() -> Model:
        import pilae

        return behind(numbers(scaled=False), getattr(pilae, f"PILAE{kind}")(random_state=0))

    return make


def lightgbm(kind: str):
    def make() -> Model:
        import lightgbm

        return getattr(lightgbm, f"LGBM{kind}")(random_state=0, n_jobs=1, verbose=-1)

    return make


class CatBoost:
    """CatBoost with the table's categories, which its `fit` wants to be told."""

    def __init__(self, kind: str) -> None:
        import catboost

        self.model = getattr(catboost, f"CatBoost{kind}")(
            random_state=0, thread_count=1, verbose=False, allow_writing_files=False
        )

    def fit(self, X, y) -> None:
        self.model.fit(X, y, cat_features=[name for name in X if X[name].dtype == "category"])

    def predict(self, X) -> np.ndarray:
        return np.asarray(self.model.predict(X)).ravel()

    def __getattr__(self, name: str):
        return getattr(self.model, name)  # predict_proba, where it has it


class XRFM:
    """xRFM on columns as its README has them; a fifth of the rows is for its own choices."""

    def __init__(self, classes: bool) -> None:
        from xrfm import xRFM

        self.classes, self.columns = classes, numbers(scaled=True)
        self.model = xRFM(device="cpu", random_state=0, n_threads=1, verbose=False)
        if classes:
            self.predict_proba = self._probabilities

    def fit(self, X, y) -> None:
        from sklearn.model_selection import train_test_split

        self.mean, self.scale = (0, 1) if self.classes else (y.mean(), y.std())
        y = y.astype(np.int64) if self.classes else ((y - self.mean) / self.scale).astype(np.float32)
        parts = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y if self.classes else None)
        X, X_own = (self.columns.fit_transform(parts[0]), self.columns.transform(parts[1]))
        self.model.fit(X.astype(np.float32), parts[2], X_own.astype(np.float32), parts[3])

    def predict(self, X) -> np.ndarray:
        if self.classes:
            return self._probabilities(X).argmax(axis=1)
        return self.mean + self.scale * np.asarray(self.model.predict(self._columns(X))).ravel()

    def _probabilities(self, X) -> np.ndarray:
        return np.asarray(self.model.predict_proba(self._columns(X)))

    def _columns(self, X) -> np.ndarray:
        return self.columns.transform(X).astype(np.float32)


def realmlp(kind: str):
    def make() -> Model:
        import pytabkit

        model = getattr(pytabkit, f"RealMLP_TD_{kind}")(device="cpu", random_state=0, n_threads=1)
        return behind(filled(), model)

    return make


def forest(kind: str):
    def make() -> Model:
        from sklearn import ensemble

        model = getattr(ensemble, f"RandomForest{kind}")(300, random_state=0)
        return behind(numbers(scaled=False), model)

    return make


def boosting(kind: str):
    def make() -> Model:
        from sklearn import ensemble

        return getattr(ensemble, f"HistGradientBoosting{kind}")(random_state=0)

    return make


def machine(kind: str):
    def make() -> Model:
        from sklearn import svm

        return behind(numbers(scaled=True), getattr(svm, kind)(), scaled_target=kind == "SVR")

    return make


def perceptron(kind: str):
    def make() -> Model:
        from sklearn import neural_network

        model = getattr(neural_network, f"MLP{kind}")(random_state=0)
        return behind(numbers(scaled=True), model, scaled_target=kind == "Regressor")

    return make


def linear(kind: str):
    def make() -> Model:
        from sklearn import linear_model

        return behind(numbers(scaled=True), getattr(linear_model, kind)())

    return make


KINDS = ("Classifier", "Regressor")
PEERS = {
    "pilae": Peer(*map(pilae, KINDS), "pilae"),
    "LightGBM": Peer(*map(lightgbm, KINDS), "lightgbm"),
    "HistGradientBoosting": Peer(*map(boosting, KINDS), "scikit-learn"),
    "RandomForest": Peer(*map(forest, KINDS), "scikit-learn"),
    "SVM": Peer(machine("SVC"), machine("SVR"), "scikit-learn"),
    "linear": Peer(linear("LogisticRegression"), linear("Ridge"), "scikit-learn"),
    "MLP": Peer(*map(perceptron, KINDS), "scikit-learn"),
    "CatBoost": Peer(lambda: CatBoost("Classifier"), lambda: CatBoost("Regressor"), "catboost"),
    "xRFM": Peer(lambda: XRFM(True), lambda: XRFM(False), "xrfm"),
    "RealMLP": Peer(*map(realmlp, KINDS), "pytabkit"),
}
"""In the order they are run, quick ones first."""


# --- measuring ---


def one_thread() -> None:
    """One thread for every library: for those that are loaded later by what they read then, for the others now."""
    from threadpoolctl import threadpool_limits

    os.environ.update(dict.fromkeys(THREADS, "1"))
    threadpool_limits(1)


def warm_up(make: Callable[[], Model]) -> None:
    """One fit that nobody times: what a package loads or compiles at its first one is not the first table's time."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"number": rng.standard_normal(60), "word": pd.Categorical(rng.choice(["a", "b", "c"], 60))})
    attempt(make, Split(X, np.arange(60) % 2, X, np.arange(60) % 2), True)


def measure(make: Callable[[], Model], fold: Split, classes: bool) -> dict:
    """Score, log-loss and seconds of one model on one fold; pilae's own estimate of the score where it has one."""
    from sklearn.metrics import accuracy_score, log_loss, r2_score

    model = make()
    fitting, _ = seconds_of(lambda: model.fit(fold.X, fold.y))
    predicting, said = seconds_of(lambda: model.predict(fold.X_test))
    result = {
        "score": float((accuracy_score if classes else r2_score)(fold.y_test, said)),
        "seconds": fitting + predicting,
    }
    if classes and hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(fold.X_test), dtype=np.float64)
        probabilities /= probabilities.sum(axis=1, keepdims=True)  # in float32 they sum to nearly one
        result["log_loss"] = float(log_loss(fold.y_test, probabilities, labels=np.unique(fold.y)))
    loo = getattr(model[-1] if hasattr(model, "steps") else model, "loo_score_", None)
    return result if loo is None else result | {"loo": float(loo)}


def attempt(make: Callable[[], Model], fold: Split, classes: bool) -> dict:
    """A measurement, or why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # peers warn of iterations and of their dependencies' changes
            return measure(make, fold, classes)
    except Exception as error:  # whatever a peer raises on one table, the others go on
        return {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m studies.tables.peers", description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=PEERS, default=list(PEERS), metavar="name")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES), metavar="name")
    parser.add_argument("--folds", type=int, choices=range(1, 6), default=5)
    parser.add_argument("--rows", type=int, default=3000, help="tables of more are cut to that many")
    parser.add_argument("--again", action="store_true", help="measure what is there already, too")
    return parser.parse_args(words)


def run(results: dict, options: argparse.Namespace) -> Iterator[str]:
    """Fill in what is missing, one fold after another; after each a line that says what was found."""
    commit = describe()["commit"]
    for model in options.models:
        peer = PEERS[model]
        warm_up(peer.classifier)
        results["models"][model] = {"package": peer.package, "version": version(peer.package)}
        for name in options.tables:
            classes = name in CLASSIFICATION
            table = results["tables"].setdefault(name, shape(*load(name, options.rows), classes) | {"models": {}})
            cells = table["models"].setdefault(model, {})
            left = [k for k in range(options.folds) if options.again or str(k) not in cells]
            for k, fold in enumerate(folds(name, options.rows, options.folds) if left else ()):
                if k in left and not any(cell.get("seconds", 0) > PATIENCE for cell in cells.values()):
                    cells[str(k)] = attempt(peer[not classes], fold, classes) | {"commit": commit}
                    yield f"{model:<22}{name:<18}{k} {cells[str(k)]}"


def in_order(results: dict) -> dict:
    """Models and tables in the order they have here, whichever was measured first."""
    models = {name: results["models"][name] for name in PEERS if name in results["models"]}
    tables = {name: results["tables"][name] for name in TABLES if name in results["tables"]}
    return results | {"models": models, "tables": tables}


def main() -> None:
    options = arguments(sys.argv[1:])
    one_thread()
    path = results_of("tables", "peers")
    results = {"models": {}, "tables": {}} | read(path)
    if results.get("rows", options.rows) != options.rows:
        sys.exit(f"{path.name} has tables of up to {results['rows']} rows: run with that many, or move the file away.")
    results |= {"command": "python -m studies.tables.peers", "machine": describe(), "rows": options.rows}
    for line in run(results, options):
        write(path, in_order(results))
        print(line, flush=True)


if __name__ == "__main__":
    main()
