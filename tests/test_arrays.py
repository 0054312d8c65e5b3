"""The same code on every array library: same numbers, results stay where the input lives."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.special
import torch

from helpers import blobs, close, interpolation, rounding, shown
from pilae import SHLN, PILAEClassifier, PILAERegressor, PILAutoencoder, PILClassifier, PILRegressor, StackedPILAE
from pilae._arrays.kernels import GRAM_COLUMNS, column_range, column_squares, gram
from pilae._engine.activations import ACTIVATIONS, activate

X, Y = blobs(120)
W = np.random.default_rng(0).integers(1, 3, 120).astype(float)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "params",
    [{"width": [5, 4]}, {"depth": 0}, {"width": [4], "head": "ridge"}, {"width": [4], "head": "softmax"}],
    ids=str,
)
def test_classifier(library, params, dtype):
    x = X.astype(dtype)
    reference = PILAEClassifier(**params).fit(x, Y, sample_weight=W)
    rounded, exact = (PILAEClassifier(**params).fit(X.astype(kind), Y, sample_weight=W) for kind in ("f4", "f8"))
    model = PILAEClassifier(**params).fit(library(x), Y, sample_weight=W)  # y stays NumPy
    for method in ("predict_proba", "decision_function", "transform", "predict"):
        out = getattr(model, method)(library(x))
        assert library.owns(out)
        known = shown(getattr(rounded, method)(X.astype("f4")), getattr(exact, method)(X))
        close(library.numpy(out), getattr(reference, method)(x), dtype, known, terms=len(X))
    assert library.owns(model.network_(library(x)))
    assert model.score(library(x), library(Y)) == pytest.approx(reference.score(x, Y), abs=0.02)


def test_regressor(library):
    reference = PILAERegressor(width=[5]).fit(X, X[:, :2])
    model = PILAERegressor(width=[5]).fit(library(X), library(X[:, :2]))
    out = model.predict(library(X))
    assert library.owns(out)
    close(library.numpy(out), reference.predict(X), **rounding(reference))


@pytest.mark.parametrize("estimator", [StackedPILAE(width=[5, 3]), PILAutoencoder(width=4, encoder="truncated")])
def test_transformers(library, estimator):
    reference = estimator.fit(X)
    H, back, scores = (
        reference.transform(X),
        reference.inverse_transform(reference.transform(X)),
        reference.score_samples(X),
    )
    model = estimator.fit(library(X))
    ours = model.transform(library(X))
    assert library.owns(ours)
    layers = {"condition": 5 / 1e-3, "terms": 120}  # at most five features, the ridge of the decoders
    close(library.numpy(ours), H, **layers)
    close(library.numpy(model.inverse_transform(ours)), back, **layers)
    close(library.numpy(model.score_samples(library(X))), scores, **layers)


def test_basic_pil(library):
    model = PILClassifier().fit(library(X), Y)
    assert model.score(library(X), Y) == 1.0
    assert library.owns(model.predict(library(X)))
    out = PILRegressor().fit(library(X), X[:, 0] ** 2).predict(library(X))
    close(library.numpy(out), X[:, 0] ** 2, **interpolation(PILRegressor().fit(X, X[:, 0] ** 2), X))


REFERENCE = {
    "sigmoid": scipy.special.expit,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "sin": np.sin,
    "softplus": lambda x: np.logaddexp(x, 0),
    "swish": lambda x: x * scipy.special.expit(x),
    "gelu": lambda x: x * scipy.special.ndtr(x),
    "linear": lambda x: x,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(library, activation):
    x = np.linspace(-700, 700, 1401).reshape(-1, 3)
    with np.errstate(all="raise", under="ignore"):
        out = activate(activation, library(x) + 0.0)
    assert library.owns(out)
    assert np.isfinite(library.numpy(out)).all()
    close(library.numpy(out), REFERENCE[activation](x))
    bias = np.array([1.0, -2.0, 0.5])
    close(library.numpy(activate(activation, library(x) + 0.0, library(bias))), REFERENCE[activation](x + bias))
    assert library.numpy(activate(activation, library(x.astype(np.float32)) + 0.0)).dtype == np.float32


def test_symmetric_products_by_column_blocks(library):
    a = np.random.default_rng(0).standard_normal((20, 2 * GRAM_COLUMNS + 7))
    G = library.numpy(gram(library(a)))
    close(G, a.T @ a, terms=20)
    close(library.numpy(column_squares(library(a.astype(np.float32)))), (a**2).sum(0), dtype="float32", terms=20)


@pytest.mark.parametrize("shape", [(1, 3), (7, 5000), (2000, 1), (1365, 3), (1366, 3), (5000, 7)])
def test_the_range_of_columns_wherever_the_lowest_and_the_highest_stand(library, shape):
    a = np.random.default_rng(0).standard_normal(shape)
    a[0, 0], a[-1, -1] = -9.0, 9.0
    low, high = column_range(library(a))
    assert np.array_equal(low, a.min(axis=0))
    assert np.array_equal(high, a.max(axis=0))
    assert np.array_equal(column_range(np.asfortranarray(a)), [low, high])


def test_string_classes_come_back_as_numpy(library):
    model = PILAEClassifier(depth=0).fit(library(X), np.array(["a", "b", "c"])[Y])
    assert set(model.predict(library(X))) == {"a", "b", "c"}


def test_other_library_is_an_error_with_the_cure():
    model = PILAEClassifier(depth=0).fit(torch.asarray(X), Y)
    with pytest.raises(ValueError, match=r"pass torch.asarray\(X, device='cpu'\)"):
        model.predict(X)
    with pytest.raises(ValueError, match=r"numpy.asarray\(X.cpu\(\)\)"):
        PILAEClassifier(depth=0).fit(X, Y).predict(torch.asarray(X))


def test_device_moves_blocks_and_brings_results_back():
    # "meta"-free stand-in for a GPU: NumPy rows are computed in torch and come back as NumPy
    reference = PILAEClassifier(width=[5]).fit(X, Y)
    model = PILAEClassifier(width=[5], device="cpu:0").fit(X, Y)
    assert isinstance(model.layers_[0].weights, torch.Tensor)
    out = model.predict_proba(X)
    assert isinstance(out, np.ndarray)
    close(out, reference.predict_proba(X), **rounding(reference))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), out)


def test_foreign_arrays_are_checked_too(library):
    bad = X.copy()
    bad[3, 3] = np.inf
    with pytest.raises(ValueError, match="X contains infinity"):
        PILAEClassifier().fit(library(bad), Y)
    with pytest.raises(ValueError, match="Expected 2D array"):
        PILAEClassifier().fit(library(X[0]), Y)
    model = PILAEClassifier(depth=0).fit(library(X), Y)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(library(X[:, :3]))


@pytest.mark.parametrize("head", ["shln", "softmax"])
def test_other_dtypes_at_prediction(library, head):
    model = PILAEClassifier(width=[4], head=head).fit(library(X.astype(np.float32)), np.array(["a", "b", "c"])[Y])
    stack = StackedPILAE(width=[4]).fit(library(X))
    for dtype in (np.float64, np.float32, np.int64):
        assert set(model.predict(library(X.astype(dtype)))) <= {"a", "b", "c"}
        H = stack.transform(library(X.astype(dtype)))
        assert library.owns(stack.inverse_transform(H))
    assert library.owns(stack.inverse_transform(library(library.numpy(H).astype(np.float32))))


@pytest.mark.parametrize("weighted", [False, True])
def test_long_columns_of_float32_are_added_carefully(library, weighted):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40_000, 6)), rng.integers(0, 2, 40_000)
    w = rng.integers(1, 4, 40_000) if weighted else None
    params = {"depth": 0, "ridge": 1.0, "head": SHLN(width=60, encoder_ridge=1.0)}
    double = PILAEClassifier(**params).fit(X, y, w)
    single = PILAEClassifier(**params).fit(library(X.astype(np.float32)), y, w)
    found = library.numpy(single.decision_function(library(X[:100].astype(np.float32))))
    # a block of rows is added in float32, the blocks in float64
    close(found, double.decision_function(X[:100]), **rounding(double) | {"dtype": "float32", "terms": 60})


def test_other_settings_of_torch_do_not_matter():
    code = (
        "import torch; torch.backends.cuda.matmul.fp32_precision = 'tf32'; from pilae import PILAEClassifier; "
        "X = torch.randn(500, 5); PILAEClassifier(depth=0, head='ridge').fit(X, (X[:, 0] > 0).int())"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
