"""The autoencoder layers and the transformers made of them."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import load_digits

from helpers import close, from_svd, tolerance
from pilae import PILAutoencoder, StackedPILAE
from pilae._engine.activations import ACTIVATIONS

DIGITS = load_digits().data / 16.0
LAYER = {"condition": 4 / 1e-3, "terms": 60}
"""Of a Gram of four features with a ridge of 1e-3 of their mean square, summed over at most 60 rows."""


def literal(X, p, ridge=1e-3, f=expit):
    """One layer exactly as the paper has it (eqs 20 to 28, tied), in plain NumPy."""
    W_e = np.linalg.pinv(X)[:, :p]
    H = f(X @ W_e)
    G = H.T @ H
    W_d = np.linalg.solve(G + ridge * np.trace(G) / p * np.eye(p), H.T @ X)
    return W_d.T, np.sum((X - H @ W_d) ** 2) / np.sum(X**2)


@pytest.mark.parametrize("shape", ["tall", "wide", "rank-deficient"])
def test_literal_layer_is_the_papers(shape):
    n, d, r = {"tall": (60, 8, 8), "wide": (20, 40, 20), "rank-deficient": (60, 12, 5)}[shape]
    X = from_svd(n, d, np.linspace(1, 4, r))[0]
    model = PILAutoencoder(width=4, anchors="first", encoder_ridge=0, gain=None, input_scaling="none").fit(X)
    W, error = literal(X, 4)
    close(model.layers_[0].weights, W, **LAYER)
    close(model.layers_[0].reconstruction_error, error, **LAYER)
    assert model.layers_[0].rank == r


def test_untied_features_come_from_the_pseudoinverse():
    X = from_svd(60, 8, np.linspace(1, 4, 8))[0]
    model = PILAutoencoder(width=4, anchors="first", encoder_ridge=0, gain=None, input_scaling="none", tied=False).fit(
        X
    )
    close(model.layers_[0].weights, np.linalg.pinv(X)[:, :4], condition=4**2, terms=60)
    close(model.layers_[0].reconstruction_error, literal(X, 4)[1], **LAYER)
    with pytest.raises(ValueError, match="tied"):
        PILAutoencoder(tied="no").fit(X)


def test_rows_with_first_anchors_are_the_first_columns_of_the_pseudoinverse():
    X = from_svd(50, 9, np.linspace(1, 4, 9))[0]
    # the identity as activation and a tiny ridge: the decoder of H = X W is then the pseudoinverse of H times X
    model = PILAutoencoder(
        width=9, anchors="first", encoder_ridge=0, gain=None, activation="linear", decoder_ridge=0, input_scaling="none"
    ).fit(X)
    H = X @ np.linalg.pinv(X)[:, :9]
    close(model.layers_[0].weights, (np.linalg.pinv(H) @ X).T, condition=np.linalg.cond(H) ** 2, terms=50)


def test_ill_conditioned_input_takes_the_qr_route_and_says_so():
    X = from_svd(80, 6, np.logspace(0, -9, 6))[0]
    exact = PILAutoencoder(width=3, anchors="first", encoder_ridge=0, gain=None, input_scaling="none").fit(X)
    assert exact.layers_[0].route == "qr"
    assert exact.layers_[0].rank == 6
    assert PILAutoencoder(width=3, encoder_ridge=1e-3).fit(X).layers_[0].route == "cholesky"
    assert PILAutoencoder(width=3, encoder_ridge=np.inf).fit(X).layers_[0].route == "prototypes"


def test_truncated_encoder_and_its_limit():
    X, _, _, V = from_svd(60, 12, np.linspace(1, 4, 5))
    model = PILAutoencoder(width=2, encoder="truncated", gain=None, activation="linear", input_scaling="none").fit(X)
    # a linear autoencoder on the leading directions: its decoder spans them
    W = model.layers_[0].weights
    close(V[:, :2] @ (V[:, :2].T @ W), W, condition=4**2, terms=60)
    with pytest.raises(ValueError, match="rank 5: use a smaller width"):
        PILAutoencoder(width=6, encoder="truncated", input_scaling="none").fit(X)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation(activation):
    model = StackedPILAE(width=[30, 20], layer=PILAutoencoder(activation=activation)).fit(DIGITS[:400])
    H = model.transform(DIGITS)
    assert H.shape == (1797, 20)
    assert np.isfinite(H).all()


def test_gain_sets_the_root_mean_square_of_the_pre_activations():
    model = PILAutoencoder(width=30, gain=(4, 2), input_scaling="none").fit(DIGITS)
    close(np.sqrt(np.mean((DIGITS @ model.layers_[0].weights) ** 2)), 2.0, terms=DIGITS.size)


def test_widths():
    X = from_svd(100, 20, np.linspace(1, 2, 11))[0]

    def widths(**params):
        return [layer.width for layer in StackedPILAE(**params).fit(X).layers_]

    assert widths(width=[7, 5]) == [7, 5]
    assert widths(width=6, depth=3) == [6, 6, 6]
    assert widths(width="decay", depth=2) == [18, 16]
    assert widths(width=("decay", 0.5), depth=2) == [10, 5]
    assert widths(width="rank", depth=1) == [11]
    assert widths(width=("rank", 0.5), depth=1) == [15]
    assert widths(depth=0) == []


def test_the_width_reaches_the_reconstruction_error_asked_for():
    X, _ = load_digits(return_X_y=True)
    widths = {}
    for target in (0.4, 0.3, 0.2):
        [layer] = StackedPILAE(width=("error", target), depth=1).fit(X).layers_
        assert layer.reconstruction_error <= target
        # and no width much below it does: the bound it is found by is close
        [narrower] = StackedPILAE(width=layer.width - 3, depth=1).fit(X).layers_
        assert narrower.reconstruction_error > 0.97 * target
        widths[target] = layer.width
    assert widths[0.4] < widths[0.3] < widths[0.2] < 57
    [layer] = StackedPILAE(width=("error", 1e-9), depth=1).fit(X).layers_
    assert layer.width == 57  # beta is at most 0.9


def test_growth_stops_at_full_rank():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    model = StackedPILAE(width=30, max_depth=6).fit(X)
    # 30 neurons on 30 rows: the first hidden layer reaches rank 30, and one layer is enough
    assert len(model.layers_) == 1
    assert np.linalg.matrix_rank(model.transform(X), tol=1e-8) == 30
    assert len(StackedPILAE(width=4, max_depth=3).fit(X).layers_) == 3
    assert len(StackedPILAE(width=20, max_depth=3, growth=0.4).fit(X).layers_) == 1


def test_transform_to_any_layer():
    model = StackedPILAE(width=[30, 20, 10], input_scaling="standard").fit(DIGITS)
    scaled = model.transform(DIGITS, layer=0)
    assert np.abs(scaled.mean(0)).max() < tolerance(terms=len(DIGITS))
    for k, layer in enumerate(model.layers_):
        close(model.transform(DIGITS, layer=k + 1), expit(model.transform(DIGITS, layer=k) @ layer.weights), terms=64)
    assert model.n_passes_ == 1 + 2 * 3 + 1


def test_reconstruction_and_anomalies():
    # the seed decides which rows are neurons; the statement must hold for any
    for seed in (0, 1):
        model = StackedPILAE(width=[60, 50], random_state=seed).fit(DIGITS)
        X_hat = model.inverse_transform(model.transform(DIGITS))
        mean_error = np.mean((DIGITS - DIGITS.mean(0)) ** 2)
        assert np.mean((DIGITS - X_hat) ** 2) < 0.25 * mean_error
        scores = model.score_samples(DIGITS)
        close(scores, -np.mean((DIGITS - X_hat) ** 2, axis=1), terms=64)
        close(model.reconstruction_error_, -scores.mean(), terms=DIGITS.size)
        noise = np.random.default_rng(0).permuted(DIGITS, axis=1)
        assert np.median(model.score_samples(noise)) < np.quantile(scores, 0.01)


def test_without_decoders_there_is_no_way_back():
    model = StackedPILAE(width=[10], keep_decoders=False).fit(DIGITS)
    with pytest.raises(ValueError, match="keep_decoders=True"):
        model.inverse_transform(model.transform(DIGITS))
    with pytest.raises(ValueError, match="keep_decoders=True"):
        model.score_samples(DIGITS)
    assert model.layers_[0].decoder is None


def test_scaling_is_undone_by_the_inverse():
    X = DIGITS * np.logspace(0, 4, 64) + 7
    model = StackedPILAE(width=[60]).fit(X)
    assert model.network_.scaling is not None  # the columns have different scales
    X_hat = model.inverse_transform(model.transform(X))
    spread = X.std(0) > 0
    error = np.mean((X - X_hat)[:, spread] ** 2, axis=0) / X[:, spread].var(0)
    assert np.median(error) < 0.2
    assert StackedPILAE(width=[60]).fit(DIGITS).network_.scaling is None


def test_fit_rows_uses_a_sample_and_reads_less():
    model = StackedPILAE(width=[20], fit_rows=300).fit(DIGITS)
    full = StackedPILAE(width=[20]).fit(DIGITS)
    assert not np.allclose(model.layers_[0].weights, full.layers_[0].weights)
    assert abs(model.reconstruction_error_ - full.reconstruction_error_) < 0.3 * full.reconstruction_error_
    rms = np.sqrt(np.mean((DIGITS @ model.layers_[0].weights) ** 2))
    close(rms, 1.0, terms=DIGITS.size)  # the second gain, whatever rows the layer was fitted on
    order = np.random.default_rng(0).permutation(len(DIGITS))
    again = StackedPILAE(width=[20], fit_rows=300).fit(DIGITS[order])
    close(again.layers_[0].weights, model.layers_[0].weights, condition=20 / 1e-3, terms=300)


def test_a_stack_has_a_layer_even_where_the_input_has_full_rank():
    X = np.random.default_rng(0).standard_normal((20, 30))
    model = StackedPILAE().fit(X)
    assert len(model.layers_) >= 1
    assert model.score_samples(X).max() < 0


def test_what_was_fitted_decides_not_what_was_set_since():
    model = StackedPILAE(width=[5], keep_decoders=False).fit(DIGITS).set_params(keep_decoders=True)
    with pytest.raises(ValueError, match="fit again with keep_decoders=True"):
        model.score_samples(DIGITS)
