"""`PILAutoencoder`: one layer, by itself or as the template of a network's layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import sklearn
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from .._arrays import Array, space_of
from .._arrays.threads import sharing
from .._base.progress import CallbackSupportMixin, with_callbacks
from .._base.saveable import saveable
from .._base.scalars import is_integer, seed_of
from .._data.check import check_answer, check_same_space, check_X, tamed_weight
from .._data.opening import Question, answers, columns_of, is_streamed, stream_to_fit
from .._data.rows import Block, Rows
from .._data.targets import Encoding, NoTargets
from .._engine.pieces import MOST_COLUMNS
from .._network.growth import Grower
from .._network.layer import LayerSpec
from .._network.network import Network
from .._network.structure import CURVED, WidthRule
from .._network.survey import SCORED_ROWS, SurveySpec, survey_rows
from .._search.spec import LAYER_RIDGE
from ..export import OnnxMixin
from ..save import SaveMixin
from . import parameters
from .fitted import FittedLayers, FittedNetwork, Fitting, attribute


class BaseStack(
    SaveMixin,
    OnnxMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    Fitting[FittedLayers],
):
    """What the two transformers share: fitting a network of autoencoders and walking it both ways."""

    network_ = attribute("network")
    layers_ = attribute("network.layers")
    n_passes_ = attribute("passes")
    reconstruction_error_ = attribute("reconstruction_error")
    _n_features_out = attribute("features_out")

    def _check_loaded(self) -> None:
        fitted = self._read()
        network = fitted.network
        network.check_shapes(fitted.columns.count)
        rows = Rows(np.zeros((1, fitted.columns.count)), network.space, dtype=network.dtype)
        H = rows.map(network, fitted.columns.count)
        if self.keep_decoders:
            network.decode(H)

    def _fitted_to(
        self,
        X: Any,
        sample_weight: Any,
        layer: LayerSpec,
        anchors: str,
        width: WidthRule,
        grow: Callable[[Grower], None],
    ) -> FittedLayers:
        running, seed = self._running(), seed_of(self.random_state)
        if is_streamed(X):
            stream = stream_to_fit(running, X, None, sample_weight, NoTargets)
            rows: Rows = stream
            columns = columns_of(stream.source)
        else:
            X, columns = check_X(X, running.name, min_rows=2)
            w, _ = tamed_weight(sample_weight, X.shape[0])
            rows = running.rows(X, Encoding(), w)
        rows.progress.begin(self)
        wanted = SurveySpec(
            seed,
            anchors,
            width.bound(max(rows.d, MOST_COLUMNS) if self.input_scaling == "pieces" else rows.d),
            fit_rows=self.fit_rows,
            scored=SCORED_ROWS if self.input_scaling == "pieces" else 0,
            gram=self.input_scaling not in CURVED or rows.dual,
            input_scaling=self.input_scaling,
        )
        grower = Grower(rows, survey_rows(rows, wanted), layer, width, self.input_scaling)
        grow(grower)
        error = _mean_error(rows, grower.network) if self.keep_decoders else None
        rows.progress.close()
        rows.progress.end()
        return FittedLayers(columns, grower.network, grower.passes, error)

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
        return features_of_layer(self, X, layer)

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
        fitted, running = self._read(), self._running()
        network = fitted.network
        _need_decoders(network, "inverse_transform")
        depth = layer_number(self, network, layer, named=False)
        if running.device is None:
            check_same_space(running.name, "inverse_transform", X, network.space)
        H = network.space.asarray(X, network.dtype)
        width = network.layers[depth - 1].width if depth else network.scaled_width(fitted.columns.count)
        if H.ndim != 2 or H.shape[1] != width:
            raise ValueError(f"inverse_transform expects features of shape (rows, {width}), got {tuple(H.shape)}.")
        with np.errstate(over="ignore", invalid="ignore"):  # refused in one sentence instead
            with sharing(H):
                X_hat = network.undo(network.decode(H, depth))
            check_answer(X_hat)
        return space_of(X).asarray(X_hat)

    def score_samples(self, X: Any) -> Array:
        """Minus the reconstruction error of each row: low values are unlike the training rows.

        The error is the mean over columns of the squared difference, in the network's (scaled) input units.
        """
        fitted = self._read()
        network = fitted.network
        _need_decoders(network, "score_samples")
        question = Question(lambda rows: -_row_errors(network, rows), 0, "score_samples", at_once=True)
        return answers(self, network, fitted.columns, X, question)


@saveable
class PILAutoencoder(BaseStack, onnx="transformer"):
    """One pseudoinverse-learning autoencoder: `StackedPILAE` of depth one.

    Minimises ||X - f(X W_e) W_d||^2 + lambda_1 ||W_d||^2 over the decoder W_d, then ties W_e = W_d'. As `layer` of a
    network it says how every layer is built; then what belongs to the network (width, input_scaling, and all after it)
    is left at its default.

    Parameters
    ----------
    width : "auto", "rank", "decay", ("rank", alpha), ("decay", beta), ("error", target) or int, default="auto"
        Number of neurons, by the rules of `StackedPILAE`.
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
    input_scaling, keep_decoders, fit_rows, device, dtype, block_rows, random_state, verbose
        As in `StackedPILAE`.

    Attributes
    ----------
    layers_ : list with one Layer
    network_, n_passes_, n_features_in_, feature_names_in_
        As in `StackedPILAE`.
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
        *,
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
        parameters.remember(self, locals())

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
        parameters.check(self, RULES)
        width = WidthRule.of(self.width)
        if width.listed is not None and len(width.listed) != 1:
            raise parameters.bad(self, "width", "one rule or one integer (StackedPILAE takes several)")
        layer = layer_spec(self, keep=bool(self.keep_decoders))
        one = partial(Grower.step, last=True)
        make = partial(self._fitted_to, X, sample_weight, layer, self.anchors, width, one)
        return self._refitted(make, X, sample_weight)


RULES: parameters.Rules = {
    "width": parameters.WIDTH,
    **parameters.LAYER,
    **parameters.SCALING,
    "fit_rows": parameters.count(None, low=2),
    **parameters.KEPT,
    **parameters.PLACE,
}


def layer_spec(layer: PILAutoencoder, *, keep: bool) -> LayerSpec:
    """How to build a layer, by an autoencoder that was checked."""
    ridge = LAYER_RIDGE if layer.encoder_ridge == "auto" else float(layer.encoder_ridge)
    return LayerSpec(
        layer.encoder,
        ridge,
        layer.activation,
        layer.gain,
        layer.decoder_ridge,
        keep,
        tied=bool(layer.tied),
        decoder_l1=layer.decoder_l1,
    )


def template_of(estimator: Any) -> PILAutoencoder:
    """The autoencoder in `layer`, checked; None is one with nothing said."""
    if estimator.layer is None:
        return PILAutoencoder()
    if not isinstance(estimator.layer, PILAutoencoder):
        raise parameters.bad(estimator, "layer", "None or a PILAutoencoder such as PILAutoencoder(activation='tanh')")
    parameters.check_template(estimator, estimator.layer, parameters.LAYER)
    return estimator.layer


def features_of_layer(model: Fitting, X: Any, layer: int | None) -> Array:
    """What the first layers make of rows; None: all of them."""
    fitted: FittedNetwork = model._read()
    network, depth = fitted.network, layer_number(model, fitted.network, layer)
    question = Question(lambda rows: network(rows, depth), 0, "transform", (layer,), at_once=True)
    return answers(model, network, fitted.columns, X, question)


def layer_number(model: Any, network: Network, layer: int | None, *, named: bool = True) -> int:
    """A `layer` argument as a number of layers; None is all of them.

    `named`: the result's columns will be named after the last layer if the user asked for DataFrames.
    """
    depth = len(network.layers)
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


def _need_decoders(network: Network, method: str) -> None:
    if any(layer.decoder is None for layer in network.layers):
        raise ValueError(f"{method} needs the decoders: fit again with keep_decoders=True.")


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
