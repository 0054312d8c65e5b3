"""Features that are kept between passes, and the dtype of products."""

import numpy as np
import pytest

from helpers import blobs, close, rounding
from pilae import SHLN, PILAEClassifier, PILAutoencoder
from pilae._arrays import NUMPY, space_of, to_numpy
from pilae._data.rows import Rows
from pilae._network import network
from pilae._network.network import FeatureCache
from pilae._network.survey import SurveySpec, survey_rows
from pilae._search.builder import Products
from pilae._search.fit import _products

X, Y = blobs(n=600, d=8)
NETWORK = {"width": [7, 6], "ridge": 1e-3, "head": SHLN(width=40)}


@pytest.mark.parametrize("kept", [0, 5000, 20_000, 10**9])
def test_features_kept_between_passes_change_nothing(kept, monkeypatch):
    expected = PILAEClassifier(**NETWORK, block_rows=97).fit(X, Y)  # in blocks: nothing is kept
    monkeypatch.setattr(network, "KEPT_BYTES", kept)
    # other blocks in every pass
    monkeypatch.setattr(Rows, "rows_per_block", lambda self, width=0, bytes_=0: 1000 // (width + 1))
    found = PILAEClassifier(**NETWORK).fit(X, Y)
    close(found.decision_function(X), expected.decision_function(X), **rounding(expected))


def test_no_more_features_are_kept_than_allowed(monkeypatch):
    monkeypatch.setattr(network, "KEPT_BYTES", 8 * 3 * 250)
    calls = []

    def features(X):
        calls.append(len(X))
        return X[:, :3] * 2

    rows = Rows(X, NUMPY)
    monkeypatch.setattr(Rows, "rows_per_block", lambda self, width=0, bytes_=0: 100)
    seen = FeatureCache(features, rows)
    for _ in range(2):
        np.testing.assert_array_equal(np.concatenate([seen(block) for block in rows.blocks()]), X[:, :3] * 2)
    assert seen.held.shape == (250, 3)
    assert calls == [100] * 6 + [50] + [100] * 3  # the second time 250 rows are there already
    seen.release()
    assert seen.held is None


def test_rows_that_the_caller_wants_in_blocks_are_not_kept():
    seen = FeatureCache(lambda X: X, Rows(X, NUMPY, block_rows=100))
    for block in Rows(X, NUMPY, block_rows=100).blocks():
        seen(block)
    assert seen.held is None


def ridged(ridge, **layer):
    """One ridge inside the pseudoinverse for the layers and the head; widths that need no search."""
    return {"depth": 1, "layer": PILAutoencoder(encoder_ridge=ridge, **layer), "head": SHLN(encoder_ridge=ridge)}


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({**ridged(1e-3)}, Products("float32", "float32")),
        (
            {"layer": PILAutoencoder(encoder_ridge=1e-3), "head": SHLN(encoder_ridge=1e-6)},
            Products("float32", "float64"),
        ),
        ({**ridged(0.0)}, Products("float64", "float64")),
        ({**ridged(1e-3, encoder="truncated")}, Products("float64", "float64")),
        ({**ridged(1e-3), "width": "rank"}, Products("float64", "float64")),
        ({**ridged(1e-3), "growth": "rank"}, Products("float64", "float64")),
        ({"head": "softmax", "layer": PILAutoencoder(encoder_ridge=1e-3)}, Products("float32", "float64")),
    ],
)
def test_float32_products_only_where_a_ridge_allows_them(params, expected):
    spec = PILAEClassifier(**{"depth": 1, **params})._spec()
    assert _products(spec, Rows(X.astype("float32"), NUMPY)) == expected
    assert _products(spec, Rows(X, NUMPY)) == Products("float64", "float64")


def test_float32_products_agree_with_float64_ones():
    params = NETWORK | {
        "ridge": 1.0,
        "layer": PILAutoencoder(encoder_ridge=1e-3),
        "head": SHLN(width=40, encoder_ridge=1e-3),
    }  # a condition that float32 has digits for
    single, double = (PILAEClassifier(**params).fit(X.astype(kind), Y) for kind in ("float32", "float64"))
    close(single.decision_function(X.astype("float32")), double.decision_function(X), **rounding(single))
    assert [layer.rank for layer in single.layers_] == [layer.rank for layer in double.layers_]


def test_rows_are_chosen_where_they_are(library):
    rng = np.random.default_rng(0)
    many = rng.standard_normal((2000, 5))[rng.integers(0, 2000, 3000)]  # with repeats
    codes = np.where(rng.random(3000) < 0.02, 2, np.arange(3000) % 2)
    codes[:1500] %= 2  # the last class comes late

    def choices(X, space):
        rows = Rows(X, space, codes=codes, n_classes=3, block_rows=150)
        found = survey_rows(rows, SurveySpec(0, "spread", 40, 60, 80, lambda distinct: 70, count_all=False))
        chosen = [found.scored, found.fitted, found.searched]
        return [to_numpy(found.anchors), *(sample.numbers for sample in chosen), *(sample.weight for sample in chosen)]

    X = library(many)
    for here, there in zip(choices(many, NUMPY), choices(X, space_of(X)), strict=True):
        np.testing.assert_array_equal(here, there)
