"""Autoencoder layers grown one on another: `StackedPILAE` and `PILAutoencoder`."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._arrays import Array, space_for, space_of
from .._arrays.threads import sharing
from .._base.progress import CallbackSupportMixin, Progress, with_callbacks
from .._base.saveable import saveable
from .._base.scalars import is_integer, seed_of
from .._data.check import check_answer, check_same_space, check_X, tamed_weight
from .._data.dask import lazy_on_dask
from .._data.opening import is_streamed, rows_to_ask, stream_to_fit
from .._data.rows import Block, Rows
from .._network import structure
from .._network.growth import LAYER_RIDGE, Grower
from .._network.layer import LayerSpec
from .._network.network import Network
from .._network.survey import survey
from ..export import OnnxMixin
from ..save import SaveMixin
from . import parameters
from .whole import whole_fit


class _BaseStack(
    SaveMixin, OnnxMixin, CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """What the two transformers share: fitting a network of autoencoders and walking it both ways."""

    def _check_loaded(self) -> None:
        self.network_.check_shapes(self.n_features_in_)
        zeros = np.zeros((1, self.n_features_in_))
        rows = Rows(zeros, self.network_.space, block_rows=self.block_rows, dtype=self.network_.dtype)
        H = rows.map(self.network_, self.n_features_in_)
        if self.keep_decoders:
            self.network_.decode(H)

    def _fit(self, X: Any, sample_weight: Any, depth: int | str, max_depth: int, growth: Any) -> None:
        seed = seed_of(self.random_state)
        if is_streamed(X):
            stream, _ = stream_to_fit(self, X, None, sample_weight, labels=None)
            rows: Rows = stream
        else:
            X = check_X(self, X, reset=True, min_rows=2)
            w, _ = tamed_weight(sample_weight, X.shape[0])
            space, progress = space_for(X, self.device), Progress(self.verbose)
            rows = Rows(X, space, weight=w, block_rows=self.block_rows, dtype=self.dtype, progress=progress)
        rows.progress.begin(self)
        linear = self.input_scaling != "asinh" or rows.dual
        found = survey(
            rows,
            seed,
            self.anchors,
            structure.width_bound(self.width, rows.d),
            fit_rows=self.fit_rows,
            gram=linear,
            input_scaling=self.input_scaling,
        )
        ridge = LAYER_RIDGE if self.encoder_ridge == "auto" else float(self.encoder_ridge)
        spec = LayerSpec(
            self.encoder,
            ridge,
            self.activation,
            self.gain,
            self.decoder_ridge,
            self.keep_decoders,
            tied=self.tied,
            decoder_l1=self.decoder_l1,
        )
        grower = Grower(rows, found, spec, self.width, self.input_scaling)
        if depth == "auto":
            while grower.depth < max_depth and not grower.reached_full_rank(growth):
                grower.step()
        else:
            for k in range(int(depth)):
                grower.step(last=k + 1 == depth)
        network = grower.network
        if self.keep_decoders:
            self.reconstruction_error_ = _mean_error(rows, network)
        rows.progress.close()
        self.network_ = network
        self.layers_ = network.layers
        self.n_passes_ = grower.passes
        self._n_features_out = network.layers[-1].width if network.layers else rows.d
        rows.progress.end()

    @lazy_on_dask
    def transform(self, X: Any, layer: int | None = None) -> Array:
        """Features of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        layer : int, optional
            Stop after this many layers; by default the last. 0 gives the scaled input.

        Returns
        -------
        array of shape (n_samples, width of that layer), in X's library and on its device
        """
        rows = rows_to_ask(self, X, "transform")
        depth = layer_number(self, layer)
        width = max([rows.d, *(l.width for l in self.layers_)])
        return rows.map(lambda block: self.network_(block, depth), width)

    def inverse_transform(self, X: Any, layer: int | None = None) -> Array:
        """Reconstruct inputs from features, layer by layer through the kept decoders.

        Parameters
        ----------
        X : array-like of shape (n_samples, width of the layer)
            What `transform` gave, with the same `layer`.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        self._need_decoders("inverse_transform")
        depth = layer_number(self, layer, named=False)
        network = self.network_
        check_same_space(self, "inverse_transform", X, network.space)
        H = network.space.asarray(X, network.dtype)
        width = self.layers_[depth - 1].width if depth else self.n_features_in_
        if H.ndim != 2 or H.shape[1] != width:
            raise ValueError(f"inverse_transform expects features of shape (rows, {width}), got {tuple(H.shape)}.")
        with np.errstate(over="ignore", invalid="ignore"):  # refused in one sentence instead
            with sharing(H):
                X_hat = network.undo(network.decode(H, depth))
            check_answer(X_hat)
        return space_of(X).asarray(X_hat)

    @lazy_on_dask
    def score_samples(self, X: Any) -> Array:
        """Minus the reconstruction error of each row: low values are unlike the training rows.

        The error is the mean over columns of the squared difference, in the network's (scaled) input units.
        """
        rows = rows_to_ask(self, X, "score_samples")
        self._need_decoders("score_samples")
        width = max([rows.d, *(l.width for l in self.layers_)])
        return rows.map(lambda block: -_row_errors(self.network_, block), width)

    def _need_decoders(self, method: str) -> None:
        if any(layer.decoder is None for layer in self.layers_):
            raise ValueError(f"{method} needs the decoders: fit again with keep_decoders=True.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        tags.array_api_support = True
        return tags


@saveable
class StackedPILAE(_BaseStack, onnx="transformer"):
    """Features of a stack of pseudoinverse-learning autoencoders, without labels.

    Each layer minimises ||X - f(X W_e) W_d||^2 + lambda_1 ||W_d||^2 over the decoder W_d in closed form, with the
    encoder W_e taken from the pseudoinverse of its input (eqs 18 to 28 of the paper); then the weights are tied,
    W_e = W_d', and the hidden features are the next layer's input.

    Parameters
    ----------
    depth : int or "auto", default="auto"
        Number of layers. "auto" grows until `growth` stops it or `max_depth` is reached.
    width : "auto", "rank", "decay", ("rank", alpha), ("decay", beta), ("error", target), int or list of int, \
default="auto"
        Neurons of each layer. "rank" is eq (18), r + alpha (d - r), alpha 0 by default. "decay" is eq (19), beta d,
        beta 0.9 by default. ("error", target) takes the smallest beta up to 0.9 whose relative squared
        reconstruction error reaches the target (section III.A), and "auto" does so with 1e-3: as good as all of
        the input. A list gives every layer's width and fixes the depth.
    max_depth : int, default=2
        The most layers that depth="auto" grows.
    growth : "rank" or float, default="rank"
        After each layer, stop when ||H^+ H - I||^2 = N - rank(H) is at most 0.01 N, or the given fraction of N. With
        many more rows than neurons this never happens, and `max_depth` layers are grown.
    encoder : {"rows", "truncated"}, default="rows"
        "rows": columns of the pseudoinverse that belong to anchor rows. "truncated": the leading singular
        directions over their singular values.
    anchors : {"spread", "first"}, default="spread"
        Which rows: a hash of the row decides (the same rows in any order), or the first ones as in the paper.
    encoder_ridge : "auto" or float from 0 to infinity, default="auto"
        (X'X + eps I)^-1 instead of the pseudoinverse, eps relative to the mean of the diagonal. 0 is the paper,
        infinity takes the anchor rows themselves as weights; "auto" is 1e-3.
    activation : {"sigmoid", "tanh", "relu", "relu2", "sin", "softplus", "swish", "gelu", "linear"}, default="sigmoid"
    gain : (float, float) or None, default=(4, 1)
        Root-mean-square of the pre-activations before the decoder is solved, and after tying. None is literal.
    decoder_ridge : float, default=1e-3
        lambda_1 of (27), relative to the mean diagonal of H'H.
    decoder_l1 : float, default=0.0
        Sparse decoders: the penalty on the absolute values of the decoder's weights (the paper's last loss), relative
        to the one from which on all are zero. Tied encoders are as sparse (`layers_[k].density`); the decoders that
        `keep_decoders` adds for reconstruction are not.
    tied : bool, default=True
        Whether a layer's features come from the transposed decoder, W_e = W_d' (the paper), or from the pseudoinverse
        encoder itself, so that the decoder only says how much is lost.
    input_scaling : {"auto", "none", "standard", "asinh"}, default="auto"
        "standard" centres and scales columns, "asinh" also tames their tails. "auto" standardises unless the columns
        share one scale, that is unless the median standard deviation is at least a tenth of the largest.
    keep_decoders : bool, default=True
        Solve one more ridge per layer, from its final features back to its input, for `inverse_transform` and
        `score_samples`.
    fit_rows : int or None, default=None
        Fit the layers on this many rows (chosen by hash); None means all.
    device : str or None, default=None
        Move blocks to this torch device ("cuda"); None computes where X lives.
    dtype : {None, "float32", "float64"}, default=None
        Dtype of the blocks. None keeps float32 and makes everything else float64. Sums are always float64.
    block_rows : int or "auto", default="auto"
        Rows read at a time; "auto" keeps a block within 128 MiB.
    random_state : int, RandomState instance or None, default=None
        Seed of the hash; None counts as 0.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    layers_ : list of Layer
        One record per layer: width, rank, reconstruction_error, route, seconds, passes, weights.
    reconstruction_error_ : float
        Mean of -score_samples over the training rows (with keep_decoders).
    n_passes_ : int
        Passes over the data.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from pilae import StackedPILAE
    >>> X, _ = load_digits(return_X_y=True)
    >>> stack = StackedPILAE(width=[50, 40]).fit(X)
    >>> H = stack.transform(X)
    >>> H.shape
    (1797, 40)
    >>> stack.inverse_transform(H).shape
    (1797, 64)
    """

    def __init__(
        self,
        depth="auto",
        width="auto",
        max_depth=2,
        growth="rank",
        encoder="rows",
        anchors="spread",
        encoder_ridge="auto",
        activation="sigmoid",
        gain=(4, 1),
        decoder_ridge=1e-3,
        decoder_l1=0.0,
        tied=True,
        input_scaling="auto",
        keep_decoders=True,
        fit_rows=None,
        device=None,
        dtype=None,
        block_rows="auto",
        random_state=None,
        verbose=0,
    ):
        self.depth = depth
        self.width = width
        self.max_depth = max_depth
        self.growth = growth
        self.encoder = encoder
        self.anchors = anchors
        self.encoder_ridge = encoder_ridge
        self.activation = activation
        self.gain = gain
        self.decoder_ridge = decoder_ridge
        self.decoder_l1 = decoder_l1
        self.tied = tied
        self.input_scaling = input_scaling
        self.keep_decoders = keep_decoders
        self.fit_rows = fit_rows
        self.device = device
        self.dtype = dtype
        self.block_rows = block_rows
        self.random_state = random_state
        self.verbose = verbose

    @whole_fit
    @with_callbacks
    def fit(self, X, y=None, sample_weight=None):
        """Fit the layers.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        parameters.check_network(self)
        parameters.check_running(self)
        if self.growth == "loo":
            raise parameters.bad(self, "growth", "'rank' or a number (there is no output layer to leave rows out of)")
        listed = structure.listed_widths(self.width)
        depth = len(listed) if listed else self.depth
        self._fit(X, sample_weight, depth, self.max_depth, self.growth)
        return self


@saveable
class PILAutoencoder(_BaseStack, onnx="transformer"):
    """One pseudoinverse-learning autoencoder: `StackedPILAE` of depth one.

    Minimises ||X - f(X W_e) W_d||^2 + lambda_1 ||W_d||^2 over the decoder W_d, then ties W_e = W_d'.

    Parameters
    ----------
    width : "auto", "rank", "decay", ("rank", alpha), ("decay", beta), ("error", target) or int, default="auto"
        Number of neurons, by the rules of `StackedPILAE`.
    encoder, anchors, encoder_ridge, activation, gain, decoder_ridge, decoder_l1, tied, input_scaling, keep_decoders
        How the layer is built, as in `StackedPILAE`.
    fit_rows, device, dtype, block_rows, random_state, verbose
        As in `StackedPILAE`.

    Attributes
    ----------
    layers_ : list with one Layer
    reconstruction_error_ : float
        Mean of -score_samples over the training rows (with keep_decoders): of the kept decoder, in squared units of the
        (scaled) input. `layers_[0].reconstruction_error` is that of (27) before tying, relative to ||X||^2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pilae import PILAutoencoder
    >>> X, _ = load_iris(return_X_y=True)
    >>> autoencoder = PILAutoencoder(width=3).fit(X)
    >>> autoencoder.transform(X).shape
    (150, 3)
    >>> bool((autoencoder.score_samples(X) <= 0).all())
    True
    """

    def __init__(
        self,
        width="auto",
        encoder="rows",
        anchors="spread",
        encoder_ridge="auto",
        activation="sigmoid",
        gain=(4, 1),
        decoder_ridge=1e-3,
        decoder_l1=0.0,
        tied=True,
        input_scaling="auto",
        keep_decoders=True,
        fit_rows=None,
        device=None,
        dtype=None,
        block_rows="auto",
        random_state=None,
        verbose=0,
    ):
        self.width = width
        self.encoder = encoder
        self.anchors = anchors
        self.encoder_ridge = encoder_ridge
        self.activation = activation
        self.gain = gain
        self.decoder_ridge = decoder_ridge
        self.decoder_l1 = decoder_l1
        self.tied = tied
        self.input_scaling = input_scaling
        self.keep_decoders = keep_decoders
        self.fit_rows = fit_rows
        self.device = device
        self.dtype = dtype
        self.block_rows = block_rows
        self.random_state = random_state
        self.verbose = verbose

    @whole_fit
    @with_callbacks
    def fit(self, X, y=None, sample_weight=None):
        """Fit the autoencoder.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        parameters.check_width(self)
        if len(structure.listed_widths(self.width) or [1]) != 1:
            raise parameters.bad(self, "width", "one rule or one integer (StackedPILAE takes several)")
        parameters.check_layer(self)
        parameters.check_choice(self, "input_scaling", ("auto", "none", "standard", "asinh"))
        parameters.check_running(self)
        self._fit(X, sample_weight, 1, 1, None)
        return self


def layer_number(model: Any, layer: int | None, *, named: bool = True) -> int:
    """A `layer` argument as a number of layers; None is all of them.

    `named`: the result's columns will be named after the last layer if the user asked for DataFrames.
    """
    depth = len(model.layers_)
    if layer is None:
        return depth
    if not is_integer(layer) or not 0 <= layer <= depth:
        raise ValueError(f"'layer' must be an integer from 0 to {depth}, the number of layers. Got {layer!r} instead.")
    own = getattr(model, "_sklearn_output_config", {}).get("transform")
    container = own or sklearn.get_config()["transform_output"]
    if named and layer != depth and container != "default":
        raise ValueError(
            f"set_output(transform={container!r}) names the columns of the last layer, so layer={layer} has no names: "
            "use set_output(transform='default') for the layers before it."
        )
    return int(layer)


def _row_errors(network: Network, X: Array) -> Array:
    """Mean squared difference of each row and its reconstruction, in scaled input units."""
    x = X if network.scaling is None else network.scaling(X)
    H = x
    for layer in network.layers:
        H = layer(H)
    xp = space_of(x).xp
    return xp.mean((x - network.decode(H)) ** 2, axis=1)


class _ErrorSum:
    """The sum of weighted reconstruction errors."""

    def __init__(self) -> None:
        self.value = 0.0

    def merge(self, other: _ErrorSum) -> None:
        self.value += other.value


def _mean_error(rows: Rows, network: Network) -> float:
    def add(total: _ErrorSum, block: Block) -> None:
        e = network.space.asarray(_row_errors(network, block.X), "float64")
        total.value += float(network.space.xp.sum(e if block.w is None else e * block.w))

    width = max([rows.d, *(l.width for l in network.layers)])
    return rows.total(_ErrorSum, add, "reconstruction error", width).value / rows.total_weight
