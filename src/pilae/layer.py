"""One autoencoder layer (section III.A of the paper)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ._arrays import Array, cholesky, contiguous, diagonal, plus_diagonal, solve_triangular, space_of
from .activations import ACTIVATIONS
from .blocks import Rows
from .linalg import Gram, Triangle, add_to_triangle, ridge_solve
from .moments import Moments


class LayerSpec(NamedTuple):
    """How to build a layer: the estimator's parameters of the same names."""

    encoder: str
    encoder_ridge: float
    activation: str
    gain: tuple[float, float] | None
    decoder_ridge: float
    keep_decoder: bool


@dataclass
class Layer:
    """A fitted autoencoder layer: H = f(X W_e), eq (22), and what was learnt on the way.

    Attributes
    ----------
    weights : d x p array
        W_e after tying.
    decoder, decoder_bias : p x d and d arrays or None
        Map H back to the layer's input (kept on request).
    width, rank : int
        Neurons, and the rank of the layer's input, eq (17).
    reconstruction_error : float
        ||X - H W_d||^2 / ||X||^2 of the decoder solved by (27) and (28), before tying.
    route, decoder_route : str
        How the pseudoinverse was found ("cholesky", "eigh", "dual", "qr" or "prototypes") and how the decoder was
        ("cholesky", or "eigh" where rounding made that impossible).
    seconds, passes : float, int
        Time spent and passes over the data.
    """

    weights: Array
    activation: str
    width: int
    rank: int
    reconstruction_error: float
    route: str
    decoder_route: str = "cholesky"
    seconds: float = 0.0
    passes: int = 0
    decoder: Array | None = None
    decoder_bias: Array | None = None

    def __call__(self, X: Array) -> Array:
        return ACTIVATIONS[self.activation](X @ self.weights)

    def decode(self, H: Array) -> Array:
        """The layer's input from its features, by the kept decoder."""
        return H @ self.decoder + self.decoder_bias

    def __repr__(self) -> str:
        return (
            f"Layer(width={self.width}, rank={self.rank}, reconstruction_error={self.reconstruction_error:.4g}, "
            f"activation={self.activation!r}, route={self.route!r}, seconds={self.seconds:.3g}, passes={self.passes})"
        )


def exact_gram(rows: Rows, inputs: Callable[[Array], Array], label: str) -> Triangle:
    """The spectrum of the layer's input by a blockwise QR: one more pass, full accuracy."""
    R = None
    for block in rows.blocks(label):
        R = add_to_triangle(R, inputs(block.X), block.w)
    return Triangle(R, rows.total_weight)


def fit_layer(
    rows: Rows,
    inputs: Callable[[Array], Array],
    gram: Gram,
    anchors: Array,
    width: int,
    spec: LayerSpec,
    name: str,
    target: float | None = None,
) -> Layer:
    """Fit one layer from the spectrum of its input and one pass over the rows.

    Parameters
    ----------
    inputs : callable
        Maps a block of raw rows to this layer's input.
    gram : Gram
        Of this layer's input.
    anchors : p x d array
        The anchor rows as this layer sees them, float64.
    width, target
        Neurons; with a target, the fewest up to that many whose reconstruction error reaches it.
    """
    start, passes = time.perf_counter(), rows.passes
    space = rows.space
    f = ACTIVATIONS[spec.activation]
    rank = gram.rank
    exact = spec.encoder == "truncated" or spec.encoder_ridge == 0
    if exact and not gram.well_conditioned(width if spec.encoder == "truncated" else None):
        gram = exact_gram(rows, inputs, f"{name}: exact spectrum")
        rank = gram.rank
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
    if spec.gain is not None:
        W = _rescaled(W, gram, spec.gain[0])

    moments = Moments(space, shifted=False, product=rows.dtype)
    W_block = space.asarray(W, rows.dtype)
    for block in rows.blocks(f"{name}: decoder", width):
        X = inputs(block.X)
        moments.add(f(X @ W_block), X, block.w)
    if target is not None:
        width = _narrowest(moments, spec.decoder_ridge, target)
        moments = moments.leading(width)
    W_d, error, decoder_route = _decoder(moments, spec.decoder_ridge)

    W = W_d.mT  # tied weights: W_e = W_d'
    if spec.gain is not None:
        W = _rescaled(W, gram, spec.gain[1])
    return Layer(
        weights=contiguous(space.asarray(W, rows.dtype)),
        activation=spec.activation,
        width=width,
        rank=rank,
        reconstruction_error=error,
        route=route,
        decoder_route=decoder_route,
        seconds=time.perf_counter() - start,
        passes=rows.passes - passes,
    )


def output_moments(rows: Rows, inputs: Callable[[Array], Array], layer: Layer, spec: LayerSpec, name: str) -> Moments:
    """Moments of a fitted layer's output: the next layer's Gram, and the kept decoder, in one pass."""
    start, passes = time.perf_counter(), rows.passes
    # float64 products: the next layer reads a pseudoinverse off this Gram
    moments = Moments(rows.space, product="float64")
    for block in rows.blocks(f"{name}: features", layer.width):
        X = inputs(block.X)
        moments.add(layer(X), X if spec.keep_decoder else None, block.w)
    if spec.keep_decoder:
        # with a bias: features are far from zero, and a ridge on their mean would shrink what they say
        G, C = moments.gram(centred=True), moments.cross(centred=True)
        W_d, _ = ridge_solve(G, C, spec.decoder_ridge * _mean_diagonal(G))
        layer.decoder = rows.space.asarray(W_d, rows.dtype)
        layer.decoder_bias = rows.space.asarray(moments.mean_b - moments.mean_a @ W_d, rows.dtype)
    layer.seconds += time.perf_counter() - start
    layer.passes += rows.passes - passes
    return moments


def _decoder(moments: Moments, decoder_ridge: float) -> tuple[Array, float, str]:
    """W_d = (H'H + lambda_1 I)^-1 H'X, eqs (27) and (28), its relative squared error and the solver's route."""
    G, C = moments.gram(), moments.cross()
    xp = moments.space.xp
    W_d, route = ridge_solve(G, C, decoder_ridge * _mean_diagonal(G))
    total = float(xp.sum(moments.bb))
    left = total - 2 * float(xp.sum(W_d * C)) + float(xp.sum(W_d * (G @ W_d)))
    return W_d, max(left, 0.0) / total if total > 0 else 0.0, route


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


def _rescaled(W: Array, gram: Gram, rms: float) -> Array:
    """One global scale: root-mean-square of the pre-activations X W becomes `rms`."""
    now = (float(space_of(W).xp.sum(gram.quadratic(W))) / (gram.weight * W.shape[1])) ** 0.5
    return W * (rms / now) if now > 0 else W
