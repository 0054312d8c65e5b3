"""Small models through the public interface only, each with what it says and what it found.

A case is a function of an empty folder that returns a flat dict: name -> array, number or text. Nothing in here knows
where anything lives inside the package, so that everything inside may move.

What a search chooses is a step function of its losses: cases with a search have data and sizes for which no two losses
that decide anything are near a tie. Their candidates and choices were the same with every ridge changed at random by
1e-8 of itself, and with the kernels of OpenBLAS for Haswell, Zen, SkylakeX and Prescott on one and two threads.
"""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import sklearn
from sklearn import datasets
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import pilae
from pilae import (
    SHLN,
    ConvPILAE,
    PILAEClassifier,
    PILAEImageClassifier,
    PILAERegressor,
    PILAutoencoder,
    PILClassifier,
    PILRegressor,
    StackedPILAE,
    plot,
    scan_blocks,
    scan_csv,
    scan_parquet,
    stacked,
)

ASKED = 30
"""Rows that are predicted, about."""

Answer = dict[str, Any]


class Case(NamedTuple):
    """A function of an empty folder, and what its bound is made of (see `bound`)."""

    name: str
    run: Callable[[Path], Answer]
    dtype: str
    condition: float


CASES: dict[str, Case] = {}


def case(*, dtype: str = "float64", condition: float = 1e5) -> Callable:
    """List a function as a case.

    `condition`: about the widest layer over the smallest relative ridge of any system it solves. The default is that of
    a hundred columns and the 1e-3 of autoencoder layers.
    """

    def listed(run: Callable[[Path], Answer]) -> Callable[[Path], Answer]:
        CASES[run.__name__] = Case(run.__name__, run, dtype, condition)
        return run

    return listed


# --------------------------------------------------------------------------------------------------- data


@cache
def iris() -> tuple[np.ndarray, np.ndarray]:
    return datasets.load_iris(return_X_y=True)


@cache
def wine() -> tuple[np.ndarray, np.ndarray]:
    return datasets.load_wine(return_X_y=True)


@cache
def cancer() -> tuple[np.ndarray, np.ndarray]:
    return datasets.load_breast_cancer(return_X_y=True)


@cache
def diabetes() -> tuple[np.ndarray, np.ndarray]:
    """As measured: scaled by scikit-learn, the last bits of its entries would depend on the machine."""
    return datasets.load_diabetes(return_X_y=True, scaled=False)


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = datasets.load_digits(return_X_y=True)
    return X[:300], y[:300]


@cache
def made(n: int = 300, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Rows and two targets. RandomState because its numbers are promised to stay as they are.

    Only sums and products: sines are rounded as the machine likes.
    """
    rng = np.random.RandomState(7)
    X = rng.randint(-400, 400, (n, d)) / 128.0
    noise = rng.randint(-100, 100, (n, 2)) / 512.0
    Z = np.stack([X[:, 0] * X[:, 1] - X[:, 2], X[:, 3] ** 2 / 2 + X[:, 0]], axis=1) + noise
    return X, Z


def labels(y: np.ndarray) -> np.ndarray:
    return np.array(["ash", "birch <b>", "cédre"])[y]


def some(X: Any) -> Any:
    """About thirty rows from all of X."""
    return X[:: max(1, len(X) // ASKED)][:ASKED]


def outside(X: np.ndarray) -> np.ndarray:
    """Rows with one number each that nobody has seen: beyond the border by parts of the range, or by very much of it.

    The margin is half of the range, or less where tails are heavy, so that single rows are not far.
    """
    rows, low, high = np.array(X[:: len(X) // 20][:20], float), X.min(axis=0), X.max(axis=0)
    for k, row in enumerate(rows):
        step, column = (0.25, 0.625, 4.0, -0.625, -1000.0)[k % 5], (k // 5 + k % 5) % X.shape[1]
        row[column] = (high if step > 0 else low)[column] + step * (high - low)[column]
    return rows


# ------------------------------------------------------------------------------------------------- answers

ATTRIBUTES = (
    "loo_score_",
    "ridge_",
    "head_width_",
    "classes_",
    "n_passes_",
    "approximate_",
    "loo_is_stale_",
    "reconstruction_error_",
    "ranks_",
    "n_features_in_",
    "n_outputs",
    "patch_",
    "pool_",
    "encoder_ridge_",
    "contrast_",
    "mirror_",
    "depth_",
    "filters_",
    "image_shape_",
)

METHODS = ("predict", "predict_proba", "decision_function", "predict_interval")


def plain(value: Any) -> Any:
    """An array of NumPy from an array of any library; text from what is neither an array nor a number."""
    if value is None or isinstance(value, (str, tuple, list)):
        return value if isinstance(value, str) else json.dumps(value)
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    elif type(value).__module__.startswith("array_api_strict"):
        value = np.from_dlpack(value)
    return np.asarray(value)


def found(model: Any) -> Answer:
    """Fitted attributes."""
    answer = {name: plain(getattr(model, name)) for name in ATTRIBUTES if hasattr(model, name)}
    if hasattr(model, "layers_"):
        answer["widths"] = json.dumps([layer.width for layer in model.layers_])
        answer["layer_errors"] = np.array([layer.reconstruction_error for layer in model.layers_], float)
    if hasattr(model, "ridge_path_"):
        answer["ridges"] = np.array(list(model.ridge_path_), float)
        answer["ridge_errors"] = np.array(list(model.ridge_path_.values()), float)
    if hasattr(model, "loo_predictions_"):
        answer["loo_rows"] = some(model.loo_predictions_.rows)
        answer["loo_predicted"] = some(model.loo_predictions_.predicted)
    if getattr(model, "search_", None):
        answer |= searched(model.search_)
    return answer


def searched(table: list[dict]) -> Answer:
    """What a search tried, in order, what came of it and what it chose."""
    measured = {"loss", "error", "error_on_anchors", "standard_error", "ridge_guo2003", "seconds", "features"}
    measured |= {"error_standard_error"}  # numbers, which differ by rounding from one BLAS to another
    chosen = next(row for row in table if row["chosen"])
    value = "loss" if "loss" in chosen else "error"
    return {
        "search_choice": json.dumps({key: chosen[key] for key in chosen if key not in measured}),
        "search_candidates": len(table),
        "search_losses": np.array([row[value] for row in table], float),
    }


def said(model: Any, X: Any, *, methods: tuple[str, ...] = METHODS) -> Answer:
    """What a model says about some rows."""
    return {name: plain(getattr(model, name)(X)) for name in methods if hasattr(model, name)}


def told(model: Any, X: Any) -> Answer:
    """Everything: attributes, what is said of some rows, and the first features of each."""
    answer = found(model) | said(model, some(X))
    if hasattr(model, "transform"):
        features = plain(model.transform(some(X)))
        answer |= {"features": features[:, :4], "features_shape": json.dumps(features.shape)}
    return answer


def told_far(model: Any, rows: Any) -> Answer:
    """What a model says about rows of which some are far from all it has seen, and whether it knows which."""
    return {f"far {name}": value for name, value in said(model, rows, methods=(*METHODS, "is_far")).items()}


def each(**answers: Answer) -> Answer:
    """Several answers in one, their names in front."""
    return {f"{name}.{key}": value for name, answer in answers.items() for key, value in answer.items()}


# ----------------------------------------------------------------------------- classifiers and regressors


@case(condition=1e8)
def classifier_without_arguments(folder: Path) -> Answer:
    X, y = wine()
    return told(PILAEClassifier().fit(X, y), X)


@case(condition=1e8)
def classifier_of_two_classes(folder: Path) -> Answer:
    X, y = cancer()
    return told(PILAEClassifier(max_depth=1).fit(X[:250], y[:250]), X[250:])


@case(condition=1e8)
def regressor_without_arguments(folder: Path) -> Answer:
    X, y = diabetes()
    return told(PILAERegressor().fit(X[:300], y[:300]), X[300:])


@case(condition=1e8)
def regressor_of_two_outputs(folder: Path) -> Answer:
    X, Z = made()
    model = PILAERegressor(random_state=3).fit(X[:200], Z[:200])
    return told(model, X[200:]) | {"narrow": model.predict_interval(some(X), coverage=0.5)}


@case()
def classifier_of_given_widths(folder: Path) -> Answer:
    X, y = digits()
    return told(PILAEClassifier(width=[40, 30], ridge=1e-2, head=SHLN(width=50)).fit(X, y), X)


@case()
def head_ridge(folder: Path) -> Answer:
    X, y = iris()
    return told(PILAEClassifier(depth=1, width=3, head="ridge", ridge=1e-2).fit(X, labels(y)), X)


@case(condition=1e8)
def head_softmax(folder: Path) -> Answer:
    X, y = iris()
    return told(PILAEClassifier(depth=1, width=3, head="softmax").fit(X, labels(y)), X)


@case()
def head_of_scikit_learn(folder: Path) -> Answer:
    X, y = iris()
    Z, t = diabetes()
    network = {"width": [3], "input_scaling": "standard"}
    return each(
        classifier=told(PILAEClassifier(head=GaussianNB(), **network).fit(X, labels(y)), X),
        regressor=said(PILAERegressor(head=Ridge(alpha=1.0), **network).fit(Z, t), some(Z), methods=("predict",)),
    )


@case()
def multilabel(folder: Path) -> Answer:
    X, Z = made()
    y = (Z > 1.0).astype(int)
    network = {"width": [5], "ridge": 1e-2, "head": SHLN(width=30)}
    return told(PILAEClassifier(**network).fit(X, y), X)


@case()
def multilabel_of_scikit_learn(folder: Path) -> Answer:
    X, Z = made()
    y = (Z > 1.0).astype(int)
    model = PILAEClassifier(width=[5], head=KNeighborsClassifier(7)).fit(X, y)
    return told(model, X)


@case()
def probabilities_by_a_map(folder: Path) -> Answer:
    """Enough rows of every class for a logistic map, and rows for which it would name another class."""
    X, Z = made(1200)
    rng = np.random.RandomState(3)
    far = Z[:, 0] + rng.randint(-40, 40, 1200) / 8 > 6
    y = np.where(far, 2, (X[:, 1] + rng.randint(-40, 40, 1200) / 16 > 1.5).astype(int))
    model = PILAEClassifier(width=[5], ridge=1e-2, head=SHLN(width=40)).fit(X, y)
    torn = [26, 138, 157, 158, 176, 550, 596, 713, 925, 930, 1027]
    return told(model, X) | {"torn": model.predict_proba(X[torn])}


@case()
def skip_and_branches(folder: Path) -> Answer:
    X, Z = made()
    network = {"width": [5, 4], "ridge": 1e-2, "head": SHLN(width=30)}
    linked = SHLN(width=30, direct_links=True)
    return each(
        skip=told(PILAERegressor(skip=True, **network).fit(X, Z[:, 0]), X),
        branches=told(PILAERegressor(branches=3, **network).fit(X, Z[:, 0]), X),
        both=told(PILAERegressor(**network | {"branches": 2, "skip": True, "head": linked}).fit(X, Z[:, 0]), X),
    )


@case()
def encoder_truncated(folder: Path) -> Answer:
    X, y = digits()
    return told(
        PILAEClassifier(width=[30, 20], ridge=1e-2, layer=PILAutoencoder(encoder="truncated"), head=SHLN(width=40)).fit(
            X, y
        ),
        X,
    )


@case()
def not_tied(folder: Path) -> Answer:
    X, Z = made()
    return told(
        PILAERegressor(width=[5, 4], ridge=1e-2, layer=PILAutoencoder(tied=False), head=SHLN(width=30)).fit(X, Z), X
    )


@case(condition=1e8)
def sparse_decoder(folder: Path) -> Answer:
    X, y = digits()
    model = PILAEClassifier(width=[20], head="ridge", ridge=1e-2, layer=PILAutoencoder(decoder_l1=0.05)).fit(X, y)
    return told(model, X) | {"density": model.layers_[0].density}


@case(condition=1e6)
def loss_robust(folder: Path) -> Answer:
    X, Z = made()
    y = Z[:, 0].copy()
    y[::15] += 40.0
    model = PILAERegressor(loss="robust", width=[5], ridge=1e-2, head=SHLN(width=30)).fit(X, y)
    return told(model, X) | {"row_weights_": model.row_weights_}


@case()
def growth_by_rank(folder: Path) -> Answer:
    X, Z = made(60, 12)
    network = {"width": "decay", "ridge": 1e-2, "max_depth": 3, "head": SHLN(width=15)}
    return each(
        rank=told(PILAERegressor(growth="rank", **network).fit(X, Z[:, 0]), X),
        number=told(PILAERegressor(growth=0.9, **network).fit(X, Z[:, 0]), X),
    )


@case()
def ridge_of_2003(folder: Path) -> Answer:
    X, y = iris()
    return told(PILAEClassifier(depth=0, ridge="guo2003", head=SHLN(width=20)).fit(X, y), X)


@case()
def head_width_by_formula(folder: Path) -> Answer:
    X, Z = made()
    return told(PILAERegressor(depth=0, ridge=1e-2, head=SHLN(width="formula")).fit(X, Z[:, 0]), X)


@case(condition=1e8)
def head_width_by_leave_one_out(folder: Path) -> Answer:
    X, y = iris()
    model = PILAEClassifier(width=[3]).fit(X, y)
    path = model.width_path_
    return told(model, X) | {"first": path.first, "errors": path.errors[path.ridge], "ridge": path.ridge}


@case()
def anchors_first(folder: Path) -> Answer:
    """And the paper's gain and pre-activations, on few rows."""
    X, y = iris()
    order = np.arange(150).reshape(3, 50).T.reshape(-1)
    network = {
        "width": [4],
        "ridge": 1e-2,
        "layer": PILAutoencoder(anchors="first", gain=None, encoder_ridge=1e-2),
        "head": SHLN(width=12, encoder_ridge=1e-2),
    }
    return told(PILAEClassifier(**network).fit(X[order], y[order]), X)


@case()
def width_rules(folder: Path) -> Answer:
    X, y = digits()
    rules = {"error": ("error", 0.2), "decay": ("decay", 0.3), "rank": ("rank", 0.5)}
    network = {"depth": 1, "head": "ridge", "ridge": 1e-1}
    return each(**{name: found(PILAEClassifier(width=rule, **network).fit(X, y)) for name, rule in rules.items()})


@case()
def input_scalings(folder: Path) -> Answer:
    X, y = wine()
    network = {"width": [6], "ridge": 1e-2, "head": SHLN(width=20)}
    scalings = ("auto", "none", "standard", "asinh")
    models = {name: PILAEClassifier(input_scaling=name, **network).fit(X, y) for name in scalings}
    return each(**{name: told(model, X) for name, model in models.items()})


@case()
def head_options(folder: Path) -> Answer:
    X, y = wine()
    network = {"depth": 0, "ridge": 1e-2, "random_state": 5}
    heads = {
        "pairs": SHLN(width=20, anchors="pairs", activation="sigmoid"),
        "direct": SHLN(width=20, direct_links=True, encoder_ridge=0.1),
        "rows": SHLN(width=20, activation="relu2", encoder_ridge=np.inf),
    }
    return each(**{name: told(PILAEClassifier(head=head, **network).fit(X, y), X) for name, head in heads.items()})


@case()
def every_activation(folder: Path) -> Answer:
    X, Z = made(120)
    names = ("sigmoid", "tanh", "relu", "relu2", "sin", "softplus", "swish", "gelu", "linear")
    network = {"width": [5], "ridge": 1e-1}
    models = {
        name: PILAERegressor(layer=PILAutoencoder(activation=name), head=SHLN(15, activation=name), **network)
        for name in names
    }
    return each(**{name: said(model.fit(X, Z[:, 0]), some(X), methods=("predict",)) for name, model in models.items()})


@case(condition=1e8)
def search_in_two_rounds(folder: Path) -> Answer:
    """Enough rows for a second round; narrow, so that it is quick."""
    X, Z = made(3000, 4)
    return told(PILAERegressor(max_depth=1, head=SHLN(width=60)).fit(X, Z[:, 0]), X)


@case(condition=1e6)
def more_columns_than_rows(folder: Path) -> Answer:
    X, y = digits()
    wide = np.concatenate([X[:50], X[50:100] * 0.5], axis=1)  # 128 columns
    network = {
        "width": [20],
        "ridge": 1e-2,
        "layer": PILAutoencoder(encoder_ridge=1e-2),
        "head": SHLN(width=12, encoder_ridge=1e-2),
    }
    return each(
        classifier=told(PILAEClassifier(**network).fit(wide, y[:50]), wide),
        exact=told(StackedPILAE(width=[10], layer=PILAutoencoder(encoder_ridge=0)).fit(wide), wide),
        truncated=told(StackedPILAE(width=[10], layer=PILAutoencoder(encoder="truncated")).fit(wide), wide),
    )


@case(condition=1e6)
def exact_pseudoinverse(folder: Path) -> Answer:
    """encoder_ridge 0, also where columns repeat, which asks for an exact rank."""
    X, Z = made()
    again = np.concatenate([X, X[:, :2], np.ones((300, 1))], axis=1)
    network = {"head": "ridge", "ridge": 1e-2, "layer": PILAutoencoder(encoder_ridge=0)}
    ranks = PILAERegressor(width="rank", depth=1, **network).fit(again, Z)
    return each(
        plain=told(PILAERegressor(width=[5, 4], **network).fit(X, Z), X),
        repeated=told(ranks, again) | {"rank": ranks.layers_[0].rank},
        prototypes=told(
            PILAERegressor(
                width=[5],
                ridge=1e-2,
                layer=PILAutoencoder(encoder_ridge=np.inf),
                head=SHLN(width=12, encoder_ridge=np.inf),
            ).fit(X, Z),
            X,
        ),
    )


@case(condition=1e6)
def columns_of_absurd_size(folder: Path) -> Answer:
    """Near the ends of what a float holds, and weights as large."""
    X, Z = made()
    sizes = 2.0 ** np.array([400, 600, -500, 0, 300, 10])
    network = {"width": [5], "ridge": 1e-2, "head": SHLN(width=15)}
    heavy = PILAERegressor(**network).fit(X[:200], Z[:200], sample_weight=np.full(200, 2.0**800))
    return each(
        standard=told(PILAERegressor(input_scaling="standard", **network).fit(X * sizes, Z), X * sizes),
        together=told(PILAERegressor(**network).fit(X * 2.0**600, Z), X * 2.0**600),
        heavy=told(heavy.partial_fit(X[200:], Z[200:], sample_weight=np.full(100, 2.0**800)), X),
    )


# ---------------------------------------------------------------------------------- rows far out, groups, scales


@case()
def rows_far_outside(folder: Path) -> Answer:
    """Beyond the margins of even columns and of one with heavy tails, and after rows that came later.

    Neurons that grow without end and links from the input say more than any target was, which `predict` cuts.
    """
    X, Z = made()
    X = np.concatenate([X[:, :5], X[:, 5:] ** 7 / 512], axis=1)
    A, y = iris()
    grows = SHLN(width=20, activation="relu2", direct_links=True)
    regressor = PILAERegressor(width=[5], ridge=1e-2, head=grows).fit(X[:200], Z[:200])
    classifier = PILAEClassifier(width=[3], ridge=1e-2, head=SHLN(width=15), skip=True).fit(A, y)
    known = outside(X[:200])
    first = told_far(regressor, known)
    part = regressor.fork().partial_fit(X[200:] * 1.5, Z[200:] * 2.0)
    return each(
        regressor=first,
        classifier=told_far(classifier, outside(A)),
        part={"far": part.predict(known), "is_far": part.is_far(known)},
        merged=told_far(regressor.merge(part), known),
    )


@cache
def herds() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows near the place of their group, a number that has a part of its own in each, and groups; some rows alone."""
    rng = np.random.RandomState(11)
    group = np.concatenate([np.repeat(np.arange(30), 8), np.arange(30, 60)])
    place, own = rng.randint(-256, 256, (60, 4)) / 128.0, rng.randint(-128, 128, 60) / 128.0
    X = place[group] + rng.randint(-64, 64, (270, 4)) / 256.0
    return X, 2 * X[:, 0] + X[:, 1] + X[:, 2] ** 2 / 2 - 1 + own[group], group


@case(condition=1e8)
def groups(folder: Path) -> Answer:
    """Rows that leave together, wherever something is left out; and later, by `recalibrate`."""
    X, t, group = herds()
    y, w = (t > 0).astype(int), 1.0 + np.arange(270) % 2
    network = {"width": [4], "head": SHLN(width=30)}
    classifier = PILAEClassifier(**network).fit(X, y, groups=group)
    regressor = PILAERegressor(**network).fit(X, np.stack([t, X[:, 3]], axis=1), sample_weight=w, groups=group)
    first, early = told(regressor, X), group % 3 > 0
    again = PILAEClassifier(**network).fit(X[early], labels(y[early]), groups=group[early])
    again.partial_fit(X[~early], labels(y[~early])).recalibrate(X, labels(y), groups=group)
    return each(
        classifier=told(classifier, X) | told_far(classifier, outside(X)),
        regressor=first | told_far(regressor, outside(X)),
        recalibrated=told(again, X),
    )


@case(condition=1e8)
def target_scalings(folder: Path) -> Answer:
    """Targets of heavy tails, and even ones; the scale given, and found (which a search of one candidate is for)."""
    X, Z = made()
    even, heavy = Z[:, 0], 4 * np.prod(X / 4 + 1, axis=1) ** 2 * (1 + Z[:, 1] / 32)
    given = {"depth": 0, "ridge": 1e-2, "head": SHLN(width=30)}
    found = {"max_depth": 0, "ridge": 1e-2, "head": "ridge", "input_scaling": "standard", "skip": False, "branches": 1}
    asked = {
        "none": (PILAERegressor(target_scaling="none", **given), heavy),
        "asinh": (PILAERegressor(target_scaling="asinh", **given), np.stack([even, heavy], axis=1)),
        "heavy": (PILAERegressor(**found), heavy),
        "even": (PILAERegressor(**found), even),
    }
    answer = {}
    for name, (model, target) in asked.items():
        model.fit(X[:250], target[:250])
        answer[name] = told(model, X) | told_far(model, outside(X)) | {"scaling": model.target_scaling_}
        answer[f"{name} later"] = said(model.partial_fit(X[250:], target[250:]), some(X), methods=("predict",))
    return each(**answer)


# --------------------------------------------------------------------------------------------------- weights


@case()
def class_weights(folder: Path) -> Answer:
    X, y = iris()
    network = {"width": [3], "ridge": 1e-2, "head": SHLN(width=20)}
    uneven = slice(20, 140)
    X, y = X[uneven], y[uneven]
    return each(
        given=told(PILAEClassifier(class_weight={0: 1.0, 1: 2.0, 2: 0.5}, **network).fit(X, y), X),
        balanced=told(PILAEClassifier(class_weight="balanced", **network).fit(X, y), X),
    )


@case()
def sample_weights(folder: Path) -> Answer:
    X, y = iris()
    Z, t = made()
    w = (np.arange(150) % 4) / 2.0
    v = (np.arange(300) % 5).astype(float)
    network = {"ridge": 1e-2, "head": SHLN(width=20)}
    return each(
        classifier=told(PILAEClassifier(width=[3], **network).fit(X, y, sample_weight=w), X),
        regressor=told(PILAERegressor(width=[5], **network).fit(Z, t, sample_weight=v), Z),
        stack=told(StackedPILAE(width=[5, 3]).fit(Z, sample_weight=v), Z),
    )


@case()
def weights_for_a_head_of_scikit_learn(folder: Path) -> Answer:
    """Given without routing, and asked for by it."""
    X, y = iris()
    w = 1.0 + np.arange(150) % 4
    plain = PILAEClassifier(width=[3], head=GaussianNB()).fit(X, y, sample_weight=w)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = PILAEClassifier(width=[3], head=GaussianNB().set_fit_request(sample_weight=True))
        routed = said(asking.set_fit_request(sample_weight=True).fit(X, y, sample_weight=w), some(X))
    return each(plain=said(plain, some(X)), routed=routed)


@case()
def fit_rows(folder: Path) -> Answer:
    X, y = digits()
    network = {"width": [20], "ridge": 1e-2, "block_rows": 64, "head": SHLN(width=40)}
    return told(PILAEClassifier(fit_rows=150, **network).fit(X, y), X)


@case()
def fit_rows_found(folder: Path) -> Answer:
    X, Z = made(10_400, 4)
    model = PILAERegressor(fit_rows="auto", width=[3], ridge=1e-2, head=SHLN(width=20)).fit(X, Z[:, 0])
    return told(model, X)


# ---------------------------------------------------------------------------------- without labels, images


@case()
def stack(folder: Path) -> Answer:
    X, _ = digits()
    model = StackedPILAE(width=[30, 20]).fit(X)
    H = model.transform(some(X))
    return told(model, X) | {
        "first": model.transform(some(X), layer=1)[:, :4],
        "back": model.inverse_transform(H)[:, 20:28],
        "scores": model.score_samples(some(X)),
    }


@case()
def stack_without_arguments(folder: Path) -> Answer:
    X, _ = wine()
    model = StackedPILAE().fit(X)
    return told(model, X) | {"scores": model.score_samples(some(X))}


@case()
def autoencoder(folder: Path) -> Answer:
    X, _ = diabetes()
    model = PILAutoencoder(width=7).fit(X)
    back = model.inverse_transform(model.transform(some(X)))
    return told(model, X) | {"back": back, "scores": model.score_samples(some(X))}


@case(condition=1e6)
def images_searched(folder: Path) -> Answer:
    X, y = digits()
    model = ConvPILAE(filters=12, max_features=200).fit(X[:150], y[:150])
    return told(model, X[150:])


@case()
def images_given(folder: Path) -> Answer:
    X, _ = digits()
    given = {"filters": 8, "encoder_ridge": 1.0, "contrast": 0.1}
    two = ConvPILAE(patch=3, pool=2, mirror=False, depth=2, **given).fit(X)
    several = ConvPILAE(patch=[3, 5], pool=3, mirror=True, depth=1, pooling="max", tied=True, **given).fit(X)
    return each(two=told(two, X), several=told(several, X))


@case()
def images_in_colour(folder: Path) -> Answer:
    """Steps of two pixels, no contrast, no root; and back."""
    X, _ = digits()
    images = np.stack([X, X[::-1], 16 - X], axis=2).reshape(-1, 8, 8, 3)
    given = {
        "filters": 6,
        "mirror": False,
        "depth": 1,
        "pool": 2,
        "stride": 2,
        "patch": 4,
        "encoder_ridge": 0.1,
    }
    plain = ConvPILAE(contrast=None, power=1.0, both_signs=False, **given).fit(images)
    rows = ConvPILAE(contrast=0.1, power=0.7, image_shape=(8, 8, 3), **given).fit(images.reshape(300, -1))
    back = rows.reconstruct(images[:4].reshape(4, -1))
    return each(plain=told(plain, images), rows=told(rows, images.reshape(300, -1)) | {"back": back[:, ::5]})


@case(condition=1e6)
def images_searched_for_numbers(folder: Path) -> Answer:
    """Larger images, where a second layer is tried too, and a number to predict."""
    X, y = digits()
    images = np.kron(X[:80].reshape(-1, 8, 8), np.ones((2, 2)))[:, 1:14, 1:14]
    return told(ConvPILAE(max_features=120).fit(images, y[:80].astype(float)), images)


@case()
def images_in_a_pipeline(folder: Path) -> Answer:
    X, y = digits()
    images = X.reshape(-1, 8, 8)
    first = ConvPILAE(patch=3, filters=10, pool=2, encoder_ridge=1.0, contrast=0.1, mirror=False, depth=1)
    model = make_pipeline(first, PILAEClassifier(depth=0, head="ridge", ridge=1e-1)).fit(images[:200], y[:200])
    return said(model, images[200:240])


IMAGES = {"filters": 8, "encoder_ridge": 0.1, "contrast": 0.1, "pool": 2}


@case()
def images_compared(folder: Path) -> Answer:
    """All with all, with copies and mirror images; with some; patches of two sizes in colour. Nothing is searched."""
    X, y = digits()
    images = X.reshape(-1, 8, 8)
    colour = np.stack([images, images[:, ::-1], 16 - images], axis=3)
    given = {**IMAGES, "threshold": 0.5, "ridge": 0.1, "mirror": False, "shift": 0, "pooling": "smooth"}
    moved = PILAEImageClassifier(patch=3, **given | {"mirror": True, "shift": 1, "pooling": "average"})
    some_of_them = PILAEImageClassifier(patch=3, anchors=60, **given).fit(X[:150], y[:150])
    two_sizes = PILAEImageClassifier(patch=[3, 4], **given).fit(colour[:150], y[:150] % 2)
    return each(
        moved=told_images(moved.fit(images[:150], labels(y[:150] % 3)), images[120:]),
        some=told_images(some_of_them, X[120:]) | {"anchors": some_of_them.anchors_.reshape(60, -1)[::9, 20:28]},
        colour=told_images(two_sizes, colour[120:]),
    )


@case(condition=1e6)
def images_compared_searched(folder: Path) -> Answer:
    """A threshold, a grid, bends and an output ridge that are found."""
    X, y = digits()
    given = {**IMAGES, "patch": 3, "mirror": False, "shift": 0, "pool": "auto", "pooling": "smooth"}
    model = PILAEImageClassifier(**given).fit(X[:150].reshape(-1, 8, 8), y[:150])
    return told_images(model, X[150:].reshape(-1, 8, 8))


def told_images(model: PILAEImageClassifier, images: np.ndarray) -> Answer:
    return told(model, images) | {"threshold": model.threshold_, "pooling": model.pooling_, "shift": model.shift_}


# ------------------------------------------------------------------------------------------- basic, stacked


@case(condition=1e8)
def basic_classifier(folder: Path) -> Answer:
    X, y = wine()
    return told(PILClassifier().fit(X[::2], labels(y[::2])), X)


@case(condition=1e8)
def basic_regressor(folder: Path) -> Answer:
    X, Z = made()
    return told(PILRegressor(activation="sigmoid").fit(X[:60], Z[:60]), X[40:])


@case()
def stacked_networks(folder: Path) -> Answer:
    X, y = iris()
    Z, t = made(120)
    classify = (
        PILAEClassifier(width=[3], ridge=1e-2, head=SHLN(width=15)),
        PILAEClassifier(depth=0, head="ridge", ridge=1e-2),
    )
    regress = (
        PILAERegressor(width=[5], ridge=1e-2, head=SHLN(width=15)),
        PILAERegressor(depth=0, head="ridge", ridge=1e-2),
    )
    return each(
        classifier=said(stacked(*classify, cv=3).fit(X, y), some(X)),
        regressor=said(stacked(*regress, cv=3).fit(Z, t[:, 0]), some(Z)),
    )


# --------------------------------------------------------------------------------------------------- inputs

NETWORK = {"width": [3], "ridge": 1e-2, "head": SHLN(width=20)}
"""Of the cases that differ in where the rows come from: wine and iris with no search."""


@case(dtype="float32", condition=1e2)
def rows_float32(folder: Path) -> Answer:
    X, y = iris()
    X = X.astype(np.float32)
    network = {**NETWORK, "ridge": 1e-1}
    return each(
        own=told(PILAEClassifier(**network).fit(X, y), X),
        asked=said(PILAEClassifier(dtype="float32", **network).fit(X.astype(float), y), some(X)),
    )


@case()
def rows_sparse(folder: Path) -> Answer:
    X, y = digits()
    S = scipy.sparse.csr_array(X)
    model = PILAEClassifier(width=[20], ridge=1e-2, head=SHLN(width=40)).fit(S, y)
    stack = StackedPILAE(width=[15]).fit(S)
    # the answers are those for the rows of X, asked as sparse rows
    asked = scipy.sparse.csr_array(some(X))
    return each(classifier=found(model) | said(model, asked), stack={"features": stack.transform(asked)[:, :4]})


@case()
def rows_torch(folder: Path) -> Answer:
    import torch

    X, y = iris()
    T = torch.asarray(X.copy())
    Z, t = (torch.asarray(a.copy()) for a in made())
    return each(
        classifier=told(PILAEClassifier(**NETWORK).fit(T, torch.asarray(y.copy())), T),
        regressor=told(PILAERegressor(**NETWORK).fit(Z, t), Z),
        stack=told(StackedPILAE(width=[4]).fit(Z), Z),
    )


@case()
def rows_array_api(folder: Path) -> Answer:
    import array_api_strict as xp

    X, y = iris()
    A = xp.asarray(X.copy())
    model = PILAEClassifier(**NETWORK).fit(A, xp.asarray(y.copy()))
    return found(model) | said(model, xp.asarray(some(X).copy()))


@case()
def rows_pandas(folder: Path) -> Answer:
    import pandas as pd

    X, y = wine()
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(13)])
    model = PILAEClassifier(**NETWORK).fit(frame, pd.Series(labels(y)))
    framed = StackedPILAE(width=[4]).set_output(transform="pandas").fit_transform(frame)
    return each(
        classifier=told(model, frame) | {"names": json.dumps(list(model.feature_names_in_))},
        stack={"features": some(framed.to_numpy()), "names": json.dumps(list(framed.columns))},
    )


@case()
def rows_polars(folder: Path) -> Answer:
    """Numbers with gaps, text, truth values, dates, durations and categories; and frames as answers."""
    import polars as pl

    X, Z = made()
    n = np.arange(300)
    days = np.datetime64("1990-03-01") + (np.abs(X[:, 4]) * 2000).astype("timedelta64[D]")
    columns = {
        "c0": X[:, 0],
        "c1": [None if k % 7 == 0 else number for k, number in enumerate(X[:, 1].tolist())],
        "town": [None if k % 11 == 0 else ("Ulm", "Aachen", "Köln")[k % 3] for k in range(300)],
        "new": X[:, 2] > 0,
        "built": days,
        "wait": (n % 50 * 3_600_000).astype("timedelta64[ms]"),
        "size": pl.Series([("S", "M", "L")[k % 4 % 3] for k in range(300)], dtype=pl.Enum(["S", "M", "L", "XL"])),
    }
    frame, y = pl.DataFrame(columns), Z[:, 0] + 2 * (n % 3) + n % 4 % 3
    regressor = PILAERegressor(**NETWORK).fit(frame, pl.Series("price", y))
    classifier = PILAEClassifier(**NETWORK).fit(frame, pl.Series("kind", np.where(y > 2, "large", "small").tolist()))
    far = frame[::15].with_columns(pl.col("c0") * pl.Series([1.0, 2.5, 10.0, -1e4] * 5))
    plain = pl.DataFrame(X, schema=[f"c{k}" for k in range(6)])
    framed = StackedPILAE(width=[4]).set_output(transform="polars").fit_transform(plain)
    regressor_told = found(regressor) | said(regressor, frame[::10]) | told_far(regressor, far)
    return each(
        regressor=regressor_told | {"importances": regressor.feature_importances_},
        classifier=found(classifier) | said(classifier, frame[::10]) | told_far(classifier, far),
        stack={"features": some(framed.to_numpy()), "names": json.dumps(framed.columns)},
    )


@case()
def categorical_features(folder: Path) -> Answer:
    """Codes by their numbers, a mask and a name; text and categories as they come; and some that nobody has seen."""
    import pandas as pd

    X, Z = made()
    n = np.arange(300)
    A = np.stack([X[:, 0], n % 5, X[:, 1], n % 7 % 4], axis=1)
    t = Z[:, 0] + np.array([0.0, 3.0, -2.0, 5.0, 1.0])[n % 5] + (n % 7 % 4 == 2)
    kind = labels(np.digitize(t, [-1.0, 4.0]))
    frame = table(A).assign(town=np.array(["Ulm", "Aachen", None], object)[n % 3], flat=pd.Categorical(X[:, 2] > 0))
    numbers = PILAERegressor(categorical_features=[1, 3], **NETWORK).fit(A, t)
    mask = PILAEClassifier(categorical_features=[False, True, False, True], **NETWORK).fit(A, kind)
    names = PILAERegressor(categorical_features=["c1"], **NETWORK).fit(frame, np.stack([t, X[:, 1]], axis=1))
    dtypes = PILAEClassifier(**NETWORK).fit(frame[:200], kind[:200])
    far = A[::15].copy()
    far[:, 0] *= [1.0, 2.5, 10.0, -1e4] * 5
    far[::7, 1] = 9.0
    strange = frame[::15].assign(c0=far[:, 0], c1=far[:, 1], town=["Ulm", "Bonn"] * 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of categories that nobody has seen
        answers = each(
            numbers=told(numbers, A) | told_far(numbers, far),
            mask=told(mask, A) | told_far(mask, far),
            names=told(names, frame) | told_far(names, strange),
            dtypes=told(dtypes, frame) | told_far(dtypes, strange),
        )
    answers |= {"importances": names.feature_importances_}
    return answers | {"later": said(dtypes.partial_fit(frame[200:], kind[200:]), some(frame))["decision_function"]}


def table(X: np.ndarray, **columns: np.ndarray) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])]).assign(**columns)


@case()
def rows_csv(folder: Path) -> Answer:
    X, y = wine()
    table(X, kind=labels(y), weight=1.0 + y).to_csv(folder / "wine.csv", index=False)
    model = PILAEClassifier(**NETWORK).fit(scan_csv(folder / "wine.csv", "kind", weight="weight"))
    few = scan_csv(folder / "wine.csv", columns=["c0", "c3", "c5"], target="c6")
    return each(
        classifier=told(model, table(X)),
        regressor=told(PILAERegressor(**NETWORK).fit(few), table(X)[["c0", "c3", "c5"]]),
    )


@case()
def rows_parquet(folder: Path) -> Answer:
    X, Z = made()
    for k in range(3):
        table(X[k::3], target=Z[k::3, 0]).to_parquet(folder / f"part{k}.parquet")
    source = scan_parquet(sorted(folder.glob("*.parquet")), "target")
    model = PILAERegressor(**NETWORK).fit(source)
    stack = StackedPILAE(width=[4]).fit(source)
    return told(model, table(X)) | {"score": model.score(source), "stack": stack.transform(table(X[:9]))}


@case(condition=1e8)
def rows_blocks(folder: Path) -> Answer:
    """With a search, on a stream."""
    X, Z = made()

    def blocks():
        for start in range(0, 300, 77):
            yield X[start : start + 77], Z[start : start + 77, 0]

    return told(PILAERegressor(max_depth=1).fit(scan_blocks(blocks)), X)


@case()
def rows_sparse_blocks(folder: Path) -> Answer:
    """Sparse blocks of labels and weights, scored and learnt from later."""
    X, y = digits()
    w = 1.0 + np.arange(300) % 3
    S = scipy.sparse.csr_array(X)
    early, late = (
        [(S[a:b], y[a:b], w[a:b]) for a, b in cut] for cut in (((0, 90), (90, 200)), ((200, 260), (260, 300)))
    )
    source = scan_blocks(early)
    model = PILAEClassifier(width=[15], ridge=1e-2, head=SHLN(width=30)).fit(source)
    score = model.score(source)
    return each(first=told(model, X), later=said(model.partial_fit(scan_blocks(late)), some(X))) | {"score": score}


@case()
def rows_memmap(folder: Path) -> Answer:
    X, y = digits()
    np.save(folder / "X.npy", X)
    mapped = np.load(folder / "X.npy", mmap_mode="r")
    return told(PILAEClassifier(width=[20], ridge=1e-2, block_rows=70, head=SHLN(width=40)).fit(mapped, y), X)


@case()
def rows_dask(folder: Path) -> Answer:
    import dask
    import dask.array as da

    X, Z = made()
    with dask.config.set(scheduler="synchronous"):
        A, b = da.from_array(X, chunks=(110, 6)), da.from_array(Z * [1, 9], chunks=(90, 2))
        model = PILAERegressor(**NETWORK).fit(A, b)
        return told(model, X) | {"lazy": model.predict(A).compute()[:9], "score": model.score(A, b)}


@case()
def rows_dask_frame(folder: Path) -> Answer:
    """A frame of labels with names, and weights."""
    import dask
    import dask.dataframe as dd

    X, y = wine()
    frame = dd.from_pandas(table(X, kind=labels(y), weight=1.0 + y), npartitions=3)
    with dask.config.set(scheduler="synchronous"):
        names = [f"c{k}" for k in range(13)]
        model = PILAEClassifier(**NETWORK).fit(frame[names], frame["kind"], sample_weight=frame["weight"])
        return told(model, table(X)) | {"score": model.score(frame[names], frame["kind"])}


# -------------------------------------------------------------------------------------------------- updates


@case()
def partial_fit(folder: Path) -> Answer:
    """A first batch, a second, and one with a class that nobody announced."""
    X, y = iris()
    names = labels(y)
    model = PILAEClassifier(**NETWORK)
    for rows in (slice(0, 80), slice(80, 100), slice(100, 150)):
        model.partial_fit(X[rows], names[rows])
    early = PILAEClassifier(**NETWORK).partial_fit(X[:80], y[:80], classes=[0, 1, 2]).partial_fit(X[80:], y[80:])
    return each(new=told(model, X), announced=told(early, X))


@case()
def partial_fit_of_a_regressor(folder: Path) -> Answer:
    X, Z = made()
    w = 1.0 + np.arange(300) % 3
    model = PILAERegressor(**NETWORK).fit(X[:100], Z[:100], sample_weight=w[:100])
    model.partial_fit(X[100:200], Z[100:200], sample_weight=w[100:200])
    model.partial_fit(scan_blocks([(X[200:], Z[200:])]))
    return told(model, X)


@case()
def forget(folder: Path) -> Answer:
    X, y = iris()
    model = PILAEClassifier(**NETWORK).fit(X, y)
    forgotten = told(model.forget(X[::7], y[::7]), X)
    stay = np.arange(150) % 7 != 0
    again = model.forget(X[::7], y[::7], remaining=(X[stay], y[stay]))
    return each(forgotten=forgotten, remaining=told(again, X))


@case()
def fork_and_merge(folder: Path) -> Answer:
    X, Z = made()
    model = PILAERegressor(**NETWORK).fit(X[:100], Z[:100])
    one, two = model.fork().partial_fit(X[100:220], Z[100:220]), model.fork().partial_fit(X[220:], Z[220:])
    alike = one.network_hash_ == two.network_hash_ == model.network_hash_
    return each(part=said(one, some(X), methods=("predict",)), merged=told(model.merge(one, two), X)) | {"alike": alike}


@case()
def merge_of_classes(folder: Path) -> Answer:
    """Sites that have seen different classes; and weights of classes that count for later rows."""
    X, y = iris()
    names = labels(y)
    model = PILAEClassifier(class_weight={"birch <b>": 2.0}, **NETWORK).fit(X[:100:2], names[:100:2])
    one, two = model.fork().partial_fit(X[1:60:2], names[1:60:2]), model.fork().partial_fit(X[90:], names[90:])
    return told(model.merge(one, two), X)


@case()
def partial_fit_of_labels(folder: Path) -> Answer:
    X, Z = made()
    y = (Z > 1.0).astype(int)
    return told(PILAEClassifier(**NETWORK).partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:]), X)


@case()
def recalibrate(folder: Path) -> Answer:
    X, y = iris()
    Z, t = made()
    classifier = PILAEClassifier(**NETWORK).fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
    regressor = PILAERegressor(**NETWORK).fit(Z[:100], t[:100, 0]).partial_fit(Z[100:], t[100:, 0])
    return each(
        classifier=told(classifier.recalibrate(X, y), X),
        regressor=told(regressor.recalibrate(Z, t[:, 0]), Z),
    )


@case()
def update_all(folder: Path) -> Answer:
    X, Z = made()
    model = PILAERegressor(**{**NETWORK, "width": [5, 4]}).fit(X[:150], Z[:150])
    return told(model.partial_fit(X[150:], Z[150:], update="all"), X)


@case()
def window(folder: Path) -> Answer:
    """The last rows, with weights, from the first call on; what bounds have seen stays seen."""
    X, Z = made()
    A, y = iris()
    order = np.arange(150).reshape(3, 50).T.reshape(-1)
    A, names, w = A[order], labels(y[order]), 1.0 + np.arange(300) % 3
    X = np.where(np.arange(300)[:, None] < 60, X * 2, X)
    model = PILAERegressor(**NETWORK).partial_fit(X[:120], Z[:120], sample_weight=w[:120], window=100)
    for rows in (slice(120, 170), slice(170, 171), slice(171, 300)):
        model.partial_fit(X[rows], Z[rows], sample_weight=w[rows])
    classifier = PILAEClassifier(**NETWORK).fit(A[:60], names[:60]).fork()
    for rows in (slice(0, 60), slice(60, 110), slice(110, 150)):
        classifier.partial_fit(A[rows], names[rows], window=70)
    last = slice(80, 150)
    classifier.forget(A[140:], names[140:])
    return each(
        regressor=told(model, X) | told_far(model, outside(X[200:])) | {"in": np.array(model.rows_in_[:3], float)},
        classifier=told(classifier.recalibrate(A[last][:60], names[last][:60]), A) | told_far(classifier, outside(A)),
    ) | {"in": np.array(classifier.rows_in_[:3], float)}


@case()
def fading(folder: Path) -> Answer:
    """By calls and by rows, from the first call and later; taken out again and calibrated by age."""
    X, Z = made()
    A, y = iris()
    order = np.arange(150).reshape(3, 50).T.reshape(-1)
    A, names = A[order], labels(y[order])
    calls = PILAEClassifier(**NETWORK).fit(A[:60], names[:60])
    for rows in (slice(60, 100), slice(100, 150)):
        calls.partial_fit(A[rows], names[rows], decay=0.75)
    rows = PILAERegressor(**NETWORK).partial_fit(X[:150], Z[:150], half_life=64)
    rows.partial_fit(X[150:], -Z[150:], half_life=64)
    late = told(rows, X) | told_far(rows, outside(X))
    ages = np.arange(299.0, -1.0, -1.0)
    signs = np.where(np.arange(300) < 150, 1.0, -1.0)[:, None]
    rows.forget(X[140:160], (signs * Z)[140:160], age=ages[140:160])
    stay = np.r_[0:140, 160:300]
    rows.recalibrate(X[stay], (signs * Z)[stay], age=ages[stay])
    return each(
        calls=told(calls, A)
        | told_far(calls, outside(A))
        | {"in": calls.rows_in_.weight, "decay": calls.rows_in_.decay},
        rows=late | {"in": rows.rows_in_.weight, "half_life": rows.rows_in_.half_life},
        without=told(rows, X),
    )


@case(condition=1e6)
def stream_tested_and_followed(folder: Path) -> Answer:
    """Rows that are predicted before they are learnt; and output weights that follow one row after another.

    They follow until all weights together have grown by 1%, or 0.8 of the ridge is left where rows fade.
    """
    X, Z = made()
    A, y = iris()
    order = np.arange(150).reshape(3, 50).T.reshape(-1)
    A, names = A[order], labels(y[order])
    classifier = PILAEClassifier(**NETWORK).fit(A[:100], names[:100])
    regressor = PILAERegressor(**NETWORK).fit(X[:250], Z[:250])
    fades = regressor.fork().partial_fit(X[:250], Z[:250])
    light = np.full(10, 1 / 16)
    for start in range(100, 150, 10):
        rows = slice(start, start + 10)
        classifier.partial_fit(A[rows], names[rows], sample_weight=light, test_first=20, current=True)
    for k in range(250, 281):
        regressor.partial_fit(X[k : k + 1], Z[k : k + 1], test_first=True, current=True)
        fades.partial_fit(X[k : k + 1], Z[k : k + 1], half_life=50, current=True)
    answer = each(
        classifier=told(classifier, A) | told_far(classifier, outside(A)),
        regressor=told(regressor, X) | told_far(regressor, outside(X)),
        fades=found(fades) | said(fades, some(X), methods=("predict",)),
    )
    for name, model in (("classifier", classifier), ("regressor", regressor)):
        stream = model.stream_
        answer |= {f"{name}.stream {key}": plain(getattr(stream, key)) for key in ("score", "rows", "scores", "last")}
        answer[f"{name}.stream_score_"] = model.stream_score_
    return answer


# ---------------------------------------------------------------------------------- files and the command line


@case(condition=1e8)
def saved_and_loaded(folder: Path) -> Answer:
    """Everything that was in the model, and it learns on."""
    X, y = iris()
    PILAEClassifier(random_state=2).fit(X[::2], labels(y[::2])).save(folder / "m.pilae")
    model = pilae.load(folder / "m.pilae")
    loaded = told(model, X)
    model.partial_fit(X[1::2], labels(y[1::2])).save(folder / "small.pilae", statistics=False)
    return each(loaded=loaded, learnt=told(model, X), small=said(pilae.load(folder / "small.pilae"), some(X)))


def houses(n: int = 200) -> Any:
    """Numbers, text, dates and gaps."""
    X, Z = made(n)
    built = np.datetime64("1960-03-01") + (np.abs(X[:, 4]) * 5000).astype("timedelta64[D]")
    frame = table(X[:, :3], town=np.array(["Ulm", "Aachen", "Köln"])[np.arange(n) % 3], built=built.astype(str))
    frame.loc[::7, "c1"] = np.nan
    frame.loc[::11, "town"] = None
    return frame.assign(price=Z[:, 0] + 2 * (np.arange(n) % 3), kind=np.where(Z[:, 1] > 2, "large", "small"))


@case(condition=1e8)
def command_line(folder: Path) -> Answer:
    """Fit, predict and evaluate, for numbers and for classes."""
    import pandas as pd

    from pilae.cli import main

    houses().to_csv(folder / "houses.csv", index=False)
    answer = {}
    for target, extra in (("price", ["--interval", "0.8"]), ("kind", ["--proba"])):
        model, out = str(folder / f"{target}.pilae"), folder / f"{target}.csv"
        used = ["--columns", "c0,c1,c2,town,built"]
        fit = ["fit", str(folder / "houses.csv"), "--target", target, "-o", model, "--quiet", "--seed", "1", *used]
        predict = ["predict", model, str(folder / "houses.csv"), "-o", str(out), *extra]
        with contextlib.redirect_stdout(io.StringIO()) as said_it:
            answer[f"{target}.status"] = main(fit) or main(predict)
            said_it.seek(said_it.truncate(0) or 0)
            main(["evaluate", model, str(folder / "houses.csv"), "--json"])
        answer[f"{target}.evaluated"] = float(json.loads(said_it.getvalue())["score"])
        predicted = pd.read_csv(out)
        answer |= {f"{target}.{name}": some(predicted[name].to_numpy()) for name in predicted.columns}
        answer |= {f"{target}.{key}": value for key, value in found(pilae.load(model)["model"]).items()}
    return answer


@case(condition=1e8)
def command_line_on_other_files(folder: Path) -> Answer:
    """Parquet, npz and ARFF; info, report and export."""
    from pilae.cli import main

    X, y = iris()
    answer = {}

    def said_by(*arguments: Any) -> dict:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            answer[f"{arguments[0]} {arguments[1].name}"] = main([*map(str, arguments), "--json"])
        return json.loads(out.getvalue())

    table(X, kind=labels(y)).to_parquet(folder / "iris.parquet")
    np.savez(folder / "iris.npz", X=X, y=y)
    header = ["@relation iris", *(f"@attribute c{k} numeric" for k in range(4)), "@attribute kind {0,1,2}", "@data"]
    rows = [",".join(map(repr, [*map(float, row), int(k)])) for row, k in zip(X, y, strict=True)]
    (folder / "iris.arff").write_text("\n".join([*header, *rows]))
    for name, target in (("iris.parquet", "kind"), ("iris.npz", "y"), ("iris.arff", "kind")):
        model = folder / f"{name}.pilae"
        fit = said_by("fit", folder / name, "--target", target, "-o", model, "--quiet", "--holdout", "0.3")
        known = {"task", "rows", "columns", "leave_one_out", "held_out", "held_out_rows", "score"}
        answer |= {f"{name}.{key}": value for key, value in fit.items() if key in known}
        answer[f"{name}.evaluated"] = said_by("evaluate", model, folder / name)["score"]
    info = said_by("info", model)
    answer["info"] = json.dumps(sorted(info))
    said_by("report", model, folder / "iris.arff", "-o", folder / "report.json")
    answer["report"] = json.dumps(sorted(json.loads((folder / "report.json").read_text())))
    exported = said_by("export", model, "--onnx", folder / "iris.onnx")
    answer["export"] = json.dumps(sorted(exported))
    return answer


def through_onnx(models: dict[str, tuple[Any, np.ndarray]], folder: Path, **options: Any) -> Answer:
    """What onnxruntime makes of the exported models; it answers in float32."""
    import onnxruntime

    answer = {}
    for name, (model, rows) in models.items():
        path = str(folder / f"{name}.onnx")
        model.to_onnx(path, **options)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        outputs = session.run(None, {session.get_inputs()[0].name: some(rows).astype(np.float32)})
        answer |= {f"{name}.{k}": np.asarray(output)[..., :6] for k, output in enumerate(outputs)}
    return answer


@case(dtype="float32", condition=1e2)
def onnx(folder: Path) -> Answer:
    X, y = iris()
    Z, t = made()
    D, _ = digits()
    convolution = ConvPILAE(patch=3, filters=6, pool=2, encoder_ridge=1.0, contrast=0.1, mirror=False, depth=1)
    models = {
        "classifier": (PILAEClassifier(**NETWORK).fit(X, y), X),
        "regressor": (PILAERegressor(**NETWORK).fit(Z, t), Z),
        "stack": (StackedPILAE(width=[4]).fit(Z), Z),
        "images": (convolution.fit(D), D),
    }
    return through_onnx(models, folder)


@case(dtype="float32", condition=1e2)
def onnx_of_more(folder: Path) -> Answer:
    """Heads, scalings, branches, labels, two layers of images; and graphs that multiply in float32."""
    X, y = iris()
    Z, t = made()
    D, _ = digits()
    images = {
        "filters": 5,
        "contrast": 0.1,
        "mirror": True,
        "depth": 2,
        "patch": 3,
        "pool": 2,
        "encoder_ridge": 1.0,
    }
    network = {"width": [3], "ridge": 1e-1, "head": SHLN(width=15)}
    models = {
        "softmax": (PILAEClassifier(width=[3], head="softmax").fit(X, labels(y)), X),
        "branches": (PILAEClassifier(branches=2, skip=True, input_scaling="asinh", **network).fit(X, y > 0), X),
        "labels": (PILAEClassifier(**network).fit(Z, (t > 1).astype(int)), Z),
        "images": (ConvPILAE(pooling="max", **images).fit(D), D),
        "autoencoder": (PILAutoencoder(width=4).fit(Z), Z),
    }
    return through_onnx(models, folder) | through_onnx({"float32": models["branches"]}, folder, dtype="float32")


# -------------------------------------------------------------------------------------------------- reports


def leaves(tree: Any) -> Answer:
    """A tree of plain values as its floats, in order, and the text of everything else.

    Without what differs from run to run: times, memory, versions.
    """
    numbers: list[float] = []

    def masked(value: Any) -> Any:
        if isinstance(value, dict):
            gone = ("seconds", "peak_megabytes", "versions", "rows_per_second")
            return {key: masked(item) for key, item in value.items() if key not in gone}
        if isinstance(value, (list, tuple)):
            return [masked(item) for item in value]
        if isinstance(value, float):
            numbers.append(value)
            return "a number"
        return value

    return {"text": json.dumps(masked(tree)), "numbers": np.array(numbers)}


def page(report: Any) -> Answer:
    """What a report says, and the headings of its page."""
    headings = [line for line in report.to_markdown().splitlines() if line.startswith("#")]
    return leaves(report.summary) | {"headings": json.dumps(headings)}


@case(condition=1e6)
def reports(folder: Path) -> Answer:
    X, y = iris()
    Z, t = made(150)
    D, k = digits()
    images = {
        "filters": 5,
        "contrast": 0.1,
        "mirror": False,
        "depth": 1,
        "patch": 3,
        "pool": 2,
        "encoder_ridge": 1.0,
    }
    classifier = PILAEClassifier(**NETWORK).fit(X[::2], labels(y[::2]))
    return each(
        classifier=page(classifier.report(X[1::8], labels(y[1::8]), title="Iris")),
        regressor=page(PILAERegressor(**NETWORK).fit(Z[:100], t[:100, 0]).report(Z[100:], t[100:, 0])),
        images=page(ConvPILAE(**images).fit(D, k).report()),
    )


@case(condition=1e8)
def displays(folder: Path) -> Answer:
    """What the plots are drawn from."""
    X, y = wine()
    model = PILAEClassifier(width=[6]).fit(X[::2], y[::2])
    calibration = plot.CalibrationDisplay.computed(y, model.predict_proba(X), model.classes_)
    spectrum = plot.SpectrumDisplay.computed(X)
    depth = plot.DepthDisplay.computed(PILAEClassifier(max_depth=1).fit(X[::2], y[::2]).search_)
    return each(
        calibration={key: plain(value) for key, value in vars(calibration).items() if not key.endswith("_")},
        spectrum={"values": plain(spectrum.values), "rank": spectrum.rank, "cutoff": spectrum.cutoff},
        depth={"depths": json.dumps(list(map(int, depth.depths))), "losses": np.asarray(depth.losses, float)},
    )
