"""`PILAEClassifier()` with no argument beside scikit-learn's classifiers on tables.

    PILAE_DATA=folder python -m benchmarks.tabular [set ...]

Stratified 5-fold, raw columns, missing values filled by the median; the others get a StandardScaler. isolet_subset and
the images have their official splits; pixels are divided by 255. Writes benchmarks/results/tabular.json, one method on
one set after another, so that it can be stopped and continued: what is there is measured again only if its set is
named.
"""

import json
import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.machine import RESULTS, data_folder, describe
from pilae import PILAEClassifier

BUILT_IN = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits}
FILES = (
    "liver_bupa",
    "coil20_32x32",
    "har_subset735",
    "isolet_subset",
    "segment",
    "mfeat",
    "internet_ads",
    "spambase",
    "sylva_agnostic_train",
)
IMAGES = ("mnist", "fashion_mnist", "svhn_gray")
METHODS = {
    "PILAEClassifier": lambda: PILAEClassifier(random_state=0),
    "MLPClassifier": lambda: make_pipeline(StandardScaler(), MLPClassifier(random_state=0)),
    "LogisticRegression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "SVC": lambda: make_pipeline(StandardScaler(), SVC()),
    "RidgeClassifierCV": lambda: make_pipeline(StandardScaler(), RidgeClassifierCV(alphas=np.logspace(-3, 3, 7))),
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


def splits(name: str):
    """(X_train, y_train, X_test, y_test) of every fold."""
    if name in BUILT_IN:
        X, y = BUILT_IN[name](return_X_y=True)
    else:
        with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as data:
            if name == "isolet_subset":
                yield data["X_train"], data["y_train"], data["X_test"], data["y_test"]
                return
            if name in IMAGES:
                train, test = (
                    (data[key].reshape(len(data[key]), -1) / 255).astype("float32") for key in ("X_train", "X_test")
                )
                yield train, data["y_train"], test, data["y_test"]
                return
            X, y = data["X"].reshape(len(data["X"]), -1), data["y"]
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        fill = SimpleImputer(strategy="median").fit(X[train])
        yield fill.transform(X[train]), y[train], fill.transform(X[test]), y[test]


def measure(make, folds) -> dict:
    """Mean accuracy and seconds of one method; leave-one-out accuracy where it has one."""
    accuracy, seconds, loo = [], [], []
    for X, y, X_test, y_test in folds:
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an MLP that has not converged says so every time
            model = make().fit(X, y)
        seconds.append(time.perf_counter() - start)
        accuracy.append(float(model.score(X_test, y_test)))
        loo.append(getattr(model, "loo_score_", None))
    result = {"accuracy": float(np.mean(accuracy)), "seconds": float(np.mean(seconds))}
    return result if loo[0] is None else result | {"loo": float(np.mean(loo))}


def main() -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "tabular.json"
    results = json.loads(path.read_text()) if path.exists() else {"sets": {}}
    results |= {"command": "python -m benchmarks.tabular", "machine": describe()}
    for name in sys.argv[1:] or [*BUILT_IN, *FILES, *IMAGES]:
        folds = list(splits(name))
        rows, columns = folds[0][0].shape
        if name in sys.argv[1:] or name not in results["sets"]:
            results["sets"][name] = {"rows": rows, "columns": columns, "folds": len(folds), "methods": {}}
        methods = results["sets"][name]["methods"]
        for method, make in METHODS.items():
            slow = (method == "HistGradientBoosting" and columns > 300) or (method == "SVC" and rows > 20_000)
            if method in methods or slow:  # minutes a fold on wide tables, hours on many rows
                continue
            methods[method] = measure(make, folds)
            print(
                f"{name:<22}{method:<22}{methods[method]['accuracy']:.4f}{methods[method]['seconds']:9.2f} s",
                flush=True,
            )
            path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
