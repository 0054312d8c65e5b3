"""The paper's 784-705-634 network and the automatic one on MNIST and Fashion-MNIST: accuracy, time, memory; and
equality over blocks.

    PILAE_DATA=folder python -m studies.speed.paper_network [case ...]

Each case runs in its own process, so that peak memory is its own. Writes studies/speed/results/paper_network.json.
"""

from functools import partial

import numpy as np

from pilae import SHLN, PILAEClassifier
from studies.data import images
from studies.measure import beside_products, peak_megabytes, seconds_of
from studies.store import run_cases

NETWORK = {"width": [705, 634], "head": SHLN(4000)}
SOFTMAX = {"width": [705, 634], "head": "softmax"}
CASES = {
    "mnist, SHLN 4,000, float32": ("mnist", "float32", NETWORK),
    "mnist, SHLN 4,000, float64": ("mnist", "float64", NETWORK),
    "mnist, softmax, float32": ("mnist", "float32", SOFTMAX),
    "mnist, no argument, float32": ("mnist", "float32", {}),
    "fashion_mnist, SHLN 4,000, float32": ("fashion_mnist", "float32", NETWORK),
    "fashion_mnist, SHLN 4,000, float64": ("fashion_mnist", "float64", NETWORK),
    "fashion_mnist, softmax, float32": ("fashion_mnist", "float32", SOFTMAX),
    "fashion_mnist, no argument, float32": ("fashion_mnist", "float32", {}),
    "svhn_gray, no argument, float32": ("svhn_gray", "float32", {}),
}


def fit_case(name: str, dtype: str, params: dict) -> dict:
    X, y, X_test, y_test = images(name, dtype)
    fit = beside_products(lambda: PILAEClassifier(random_state=0, **params).fit(X, y))
    model = fit.result
    found = next((row for row in model.search_ if row["chosen"]), None)
    given = None
    if found is not None and found["head"] == "shln":  # what the structure it ends with costs without a search
        network = PILAEClassifier(
            random_state=0,
            depth=found["depth"],
            input_scaling=found["input_scaling"],
            head=SHLN(
                encoder_ridge=found["encoder_ridge"],
                anchors=found["neurons"],
                activation=found["activation"],
                direct_links=found["direct"],
            ),
        )
        given, _ = seconds_of(lambda: network.fit(X, y))
    probabilities = model.predict_proba(X_test) if hasattr(model, "predict_proba") else None
    return {
        "test_accuracy": model.score(X_test, y_test),
        "loo_accuracy": getattr(model, "loo_score_", None),
        "seconds": fit.seconds,
        "gemm": fit.gemm,
        "gemm_seconds": fit.products["float64"],
        "peak_megabytes": peak_megabytes(),
        "passes": model.n_passes_,
        "ridge": getattr(model, "ridge_", None),
        "found": found,
        "seconds_without_search": given,
        "calibration_error": None
        if probabilities is None
        else calibration_error(probabilities, model.classes_, y_test),
    }


def calibration_error(P: np.ndarray, classes: np.ndarray, y: np.ndarray) -> float:
    """Expected calibration error over 15 bins of confidence."""
    confidence, right = P.max(axis=1), classes[P.argmax(axis=1)] == y
    bins = np.minimum((15 * confidence).astype(int), 14)
    return float(
        sum(abs(right[bins == b].mean() - confidence[bins == b].mean()) * np.mean(bins == b) for b in np.unique(bins))
    )


def equality_case() -> dict:
    """Largest relative difference of the outputs on test rows: one block, blocks of 1,000, shuffled rows."""
    X, y, X_test, _ = images("mnist", "float64")
    whole = PILAEClassifier(**NETWORK, block_rows=len(X)).fit(X, y).decision_function(X_test)
    blocks = PILAEClassifier(**NETWORK, block_rows=1000).fit(X, y).decision_function(X_test)
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = PILAEClassifier(**NETWORK).fit(X[order], y[order]).decision_function(X_test)
    scale = np.abs(whole).max()
    return {
        "blocks of 1,000 against one block": float(np.abs(blocks - whole).max() / scale),
        "shuffled rows against one block": float(np.abs(shuffled - whole).max() / scale),
    }


if __name__ == "__main__":
    fits = {name: partial(fit_case, *case) for name, case in CASES.items()}
    run_cases(__spec__.name, fits | {"equality": equality_case})
