"""One autoencoder layer (section III.A of the paper)."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from .._arrays import Array, cholesky, contiguous, diagonal, matmul, plus_diagonal, solve_triangular, space_of, to_numpy
from .._base.saveable import saveable
from .._data.rows import Block, Rows
from .._engine.activations import neurons
from .._engine.linalg import (
    Gram,
    PrimalGram,
    Triangle,
    TriangleSum,
    lasso_solve,
    relative_ridge_solve,
    solve_on_support,
)
from .._engine.moments import Moments, product_under


class LayerSpec(NamedTuple):
    """How to build a layer: the estimator's parameters of the same names."""

    encoder: str
    encoder_ridge: float
    activation: str
    gain: tuple[float, float] | None
    decoder_ridge: float
    keep_decoder: bool
    keep_statistics: bool = False
    tied: bool = True
    decoder_l1: float = 0.0


@saveable
@dataclass
class Statistics:
    """What `updated_layer` needs: the sums behind a decoder, the encoder they were taken under, and what tying did."""

    moments: Moments
    encoder: Array
    decoder_ridge: float
    factor: float | None
    """The encoder after tying is the transposed decoder times this; None: it is not tied."""
    decoder_l1: float = 0.0


@saveable
@dataclass
class Layer:
    """A fitted autoencoder layer: H = f(X W_e), eq (23), and what was learnt on the way.

    Attributes
    ----------
    weights : d x p array
        W_e (after tying, unless tied=False).
    decoder, decoder_bias : p x d and d arrays or None
        Map H back to the layer's input (kept on request).
    width, rank : int
        Neurons, and the rank of the layer's input, eq (17) (found when it is asked for: eigenvalues take longer than
        the layer).
    reconstruction_error : float
        ||X - H W_d||^2 / ||X||^2 of the decoder solved by (27) and (28), before tying.
    route, decoder_route : str
        How the pseudoinverse was found ("cholesky", "eigh", "dual", "qr" or "prototypes") and how the decoder was
        ("cholesky", "eigh" where rounding made that impossible, or "lasso").
    seconds, passes : float, int
        Time spent and passes over the data.
    """

    weights: Array
    activation: str
    width: int
    input_gram: PrimalGram | int
    """The spectrum of the layer's input until somebody asks for its rank, then the rank."""
    reconstruction_error: float
    route: str
    decoder_route: str = "cholesky"
    seconds: float = 0.0
    passes: int = 0
    decoder: Array | None = None
    decoder_bias: Array | None = None
    statistics: Statistics | None = None

    @property
    def rank(self) -> int:
        if not isinstance(self.input_gram, int):
            self.input_gram = self.input_gram.rank
        return self.input_gram

    @property
    def density(self) -> float:
        """The share of weights that are not zero."""
        xp = space_of(self.weights).xp
        return float(xp.mean(xp.astype(self.weights != 0, xp.float64)))

    def __getstate__(self) -> dict:
        return vars(self) | {"input_gram": self.rank}

    def __call__(self, X: Array) -> Array:
        return neurons(self.activation, X, self.weights)

    def decode(self, H: Array) -> Array:
        """The layer's input from its features, by the kept decoder."""
        return matmul(H, self.decoder) + self.decoder_bias

    def __repr__(self) -> str:
        return (
            f"Layer(width={self.width}, rank={self.rank}, reconstruction_error={self.reconstruction_error:.4g}, "
            f"activation={self.activation!r}, route={self.route!r}, seconds={self.seconds:.3g}, passes={self.passes})"
        )


Inputs = Callable[[Block], Array]
"""From a block of raw rows to what a layer sees of it."""


def exact_gram(rows: Rows, inputs: Inputs, label: str) -> Triangle:
    """The spectrum of the layer's input by a blockwise QR: one more pass, full accuracy."""
    total = rows.total(TriangleSum, lambda total, block: total.add(inputs(block), block.w), label)
    return Triangle(total.R, rows.total_weight)


def fit_layer(
    rows: Rows, inputs: Inputs, gram: Gram, anchors: Array, width: int, spec: LayerSpec, name: str, target: float | None
) -> Layer:
    """Fit one layer from the spectrum of its input and one pass over the rows.

    Parameters
    ----------
    inputs : callable
        Maps a block of raw rows to this layer's input, which is not written over.
    gram : Gram
        Of this layer's input.
    anchors : p x d array
        The anchor rows as this layer sees them, float64.
    width, target
        Neurons; with a target, the fewest up to that many whose reconstruction error reaches it.
    """
    exact = spec.encoder == "truncated" or spec.encoder_ridge == 0
    if exact and not gram.well_conditioned(width if spec.encoder == "truncated" else None):
        gram = exact_gram(rows, inputs, f"{name}: exact spectrum")
    W, route = _first_encoder(gram, anchors, width, spec, name)
    encoder = rows.space.asarray(W, rows.dtype)
    empty = Moments(rows.space, shifted=False, product=product_under(spec.decoder_ridge, rows.space, rows.dtype))
    moments = _decoder_sums(rows, inputs, spec.activation, encoder, empty, f"{name}: decoder")
    if target is not None:
        width = _narrowest(moments, spec.decoder_ridge, target)
        moments = moments.leading(width)
    W_d, error, decoder_route = _decoder(moments, spec.decoder_ridge, spec.decoder_l1)
    W_e = W_d.mT if spec.tied else W[:, :width]  # tied weights: W_e = W_d'
    factor = 1.0 if spec.gain is None else _factor(W_e, gram, spec.gain[1])
    layer = Layer(
        weights=contiguous(rows.space.asarray(factor * W_e, rows.dtype)),
        activation=spec.activation,
        width=width,
        input_gram=gram if isinstance(gram, PrimalGram) else gram.rank,  # the others hold rows, and know it already
        reconstruction_error=error,
        route=route,
        decoder_route=decoder_route,
    )
    if spec.keep_statistics:
        tied = float(factor) if spec.tied else None
        layer.statistics = Statistics(moments, encoder[:, :width], spec.decoder_ridge, tied, spec.decoder_l1)
    return layer


def _first_encoder(gram: Gram, anchors: Array, width: int, spec: LayerSpec, name: str) -> tuple[Array, str]:
    """The encoder from the pseudoinverse of the input, before any tying, and the route to it."""
    if spec.encoder == "truncated":
        if width > gram.rank:
            raise ValueError(
                f"{name} asks for {width} neurons, but encoder='truncated' has one for each nonzero singular value and "
                f"the input has rank {gram.rank}: use a smaller width, or encoder='rows'."
            )
        W, route = gram.truncated(width), gram.route if gram.route != "cholesky" else "eigh"
    else:
        W = gram.pinv_rows(anchors[:width, :], spec.encoder_ridge)  # (20), (21)
        route = gram.route
    return W if spec.gain is None else W * _factor(W, gram, spec.gain[0]), route


def _decoder_sums(rows: Rows, inputs: Inputs, activation: str, encoder: Array, empty: Moments, label: str) -> Moments:
    """Moments of the features under an encoder beside the input they are to give back, in one pass."""

    def add(moments: Moments, block: Block) -> None:
        X = inputs(block)
        moments.add(neurons(activation, X, encoder), X, block.w, scratch=True)

    return rows.total(partial(copy.copy, empty), add, label, int(encoder.shape[1]))


def updated_layer(layer: Layer, rows: Rows, inputs: Inputs) -> Layer:
    """The layer after more rows: its decoder is that of all of them (recursive least squares), its tied encoder
    follows. Exact for a layer on the input; above it earlier rows were summed under earlier inputs."""
    kept = layer.statistics
    if kept is None:
        raise ValueError(
            "update='all' needs the sums of the layers, which this model was fitted or saved without: use "
            "keep_statistics=True in fit and statistics=True in save."
        )
    moments = kept.moments.copy()
    moments.merge(_decoder_sums(rows, inputs, layer.activation, kept.encoder, moments.like(), "decoder"))
    check_sums(moments.is_finite())
    W_d, error, route = _decoder(moments, kept.decoder_ridge, kept.decoder_l1)
    check_sums(math.isfinite(error))
    W = layer.weights if kept.factor is None else contiguous(rows.space.asarray(kept.factor * W_d.mT, rows.dtype))
    statistics = replace(kept, moments=moments)
    return replace(layer, weights=W, reconstruction_error=error, decoder_route=route, statistics=statistics)


def decoder_with_bias(moments: Moments, decoder_ridge: float, dtype: str) -> tuple[Array, Array]:
    """(W_d, b) of the map H W_d + b back to X: features are far from zero, and a ridge on their mean would shrink what
    they say."""
    G, C = moments.gram(centred=True), moments.cross(centred=True)
    W_d, _ = relative_ridge_solve(G, C, decoder_ridge)
    b = moments.mean_b - moments.mean_a @ W_d
    return moments.space.asarray(W_d, dtype), moments.space.asarray(b, dtype)


def _decoder(moments: Moments, decoder_ridge: float, decoder_l1: float) -> tuple[Array, float, str]:
    """W_d = (H'H + lambda_1 I)^-1 H'X, eqs (27) and (28), its relative squared error and the solver's route.

    With decoder_l1 the L1 loss instead, whose largest useful penalty is max |H'X|: it says which weights are zero, and
    the others are solved again without it, so that they are not shrunk.
    """
    G, C = moments.gram(), moments.cross()
    xp = moments.space.xp
    if decoder_l1 > 0:
        ridge, l1 = decoder_ridge * _mean_diagonal(G), decoder_l1 * xp.max(xp.abs(C))
        W_d = lasso_solve(G, C, l1 + xp.zeros_like(C[:1, :]), ridge)
        W_d, route = solve_on_support(G, C, W_d, ridge), "lasso"
        if not bool(xp.any(W_d != 0)):
            raise ValueError(f"decoder_l1={decoder_l1:g} leaves no weight in a layer: use a smaller one, below 1.")
    else:
        W_d, route = relative_ridge_solve(G, C, decoder_ridge)
    return W_d, relative_error(xp.sum(moments.bb), G, C, W_d), route


def squares_left(total: Array, G: Array, C: Array, W: Array) -> Array:
    """||X - H W||^2 from ||X||^2, G = H'H and C = H'X: below zero where that is rounding."""
    xp = space_of(G).xp
    return total - 2 * xp.sum(W * C) + xp.sum(W * matmul(G, W))


def relative_error(total: Array, G: Array, C: Array, W: Array) -> float:
    """||X - H W||^2 / ||X||^2, in one answer of the device; 0 where X is."""
    left, total = to_numpy(space_of(G).xp.stack([squares_left(total, G, C, W), total])).tolist()
    return max(left, 0.0) / total if total > 0 else 0.0


def _narrowest(moments: Moments, decoder_ridge: float, target: float) -> int:
    """The fewest leading neurons whose decoder has a relative squared error of at most `target`; all if none has.

    With H'H + lambda I = L L' and c = L^-1 H'X, ||X||^2 - |c_1|^2 - ... - |c_p|^2 is the ridge's objective with p
    neurons, which bounds its squared error: all widths from one factor, as in `loo`.
    """
    G, C = moments.gram(), moments.cross()
    xp, p = moments.space.xp, int(G.shape[0])
    L = cholesky(plus_diagonal(G, decoder_ridge * _mean_diagonal(G)))
    total = float(xp.sum(moments.bb))
    if L is None or total <= 0:
        return p
    explained = xp.cumulative_sum(xp.sum(solve_triangular(L, C) ** 2, axis=1))
    enough = xp.astype(explained >= (1.0 - target) * total, xp.int64)
    return p if int(xp.sum(enough)) == 0 else int(xp.argmax(enough)) + 1


def _mean_diagonal(G: Array) -> float:
    return float(space_of(G).xp.sum(diagonal(G))) / G.shape[0]


def _factor(W: Array, gram: Gram, rms: float) -> Array:
    """One global scale: with it the root-mean-square of the pre-activations X W becomes `rms`."""
    xp = space_of(W).xp
    now = xp.sqrt(xp.sum(gram.quadratic(W)) / (gram.weight * W.shape[1]))
    ones = xp.ones_like(now)
    return xp.where(now > 0, rms / xp.where(now > 0, now, ones), ones)


def check_sums(finite: bool) -> None:
    if not finite:
        raise ValueError(
            "The rows hold numbers so far beyond those of fit that their sums overflow: bring them to the units of the "
            "training rows, or leave them out."
        )
