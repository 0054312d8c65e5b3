"""`StackedPILAE`: autoencoder layers grown one on another."""

from functools import partial
from typing import ClassVar

from .._base.progress import with_callbacks
from .._base.saveable import saveable
from .._network.growth import Grower
from .._network.structure import WidthRule
from . import parameters
from .autoencoder import BaseStack, layer_spec, template_of

RULES: parameters.Rules = {
    **parameters.STACK,
    "fit_rows": parameters.count(None, low=2),
    **parameters.KEPT,
    **parameters.PLACE,
}


@saveable
class StackedPILAE(parameters.TemplateParams, BaseStack, onnx="transformer"):
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
    layer : PILAutoencoder, optional
        How each layer is built: encoder, anchors, activation, ridges and so on; None is `PILAutoencoder()`.
    input_scaling : {"auto", "none", "standard", "asinh", "pieces"}, default="auto"
        "standard" centres and scales columns, "asinh" also tames their tails, "pieces" adds ramps between quantiles of
        every column. "auto" standardises unless the columns
        share one scale, that is unless the median standard deviation is at least a tenth of the largest.
    keep_decoders : bool, default=True
        Solve one more ridge per layer, from its final features back to its input, for `inverse_transform` and
        `score_samples`.
    fit_rows : int or None, default=None
        Fit the layers on this many rows (chosen by hash); None means all.
    device : str or None, default=None
        Move blocks to this torch device ("cuda"); None computes where X lives.
    dtype : {None, "float32", "float64"}, default=None
        Dtype of the blocks. None is float32 for float32 and half floats, else float64. Sums are always float64.
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
    network_ : Network
        The layers as a function of rows.
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

    _templates: ClassVar[dict[str, str]] = {"layer": "PILAutoencoder()"}

    def __init__(
        self,
        depth="auto",
        width="auto",
        *,
        max_depth=2,
        growth="rank",
        layer=None,
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
        parameters.check(self, RULES)
        parameters.check_listed(self)
        if self.growth == "loo":
            raise parameters.bad(self, "growth", "'rank' or a number (there is no output layer to leave rows out of)")
        layer, width = template_of(self), WidthRule.of(self.width)
        spec = layer_spec(layer, keep=bool(self.keep_decoders))
        make = partial(self._fitted_to, X, sample_weight, spec, layer.anchors, width, self._grow)
        return self._refitted(make, X, sample_weight)

    def _grow(self, grower: Grower) -> None:
        listed = grower.width.listed
        depth = len(listed) if listed else self.depth
        if depth == "auto":
            while grower.depth < self.max_depth and not grower.reached_full_rank(self.growth):
                grower.step()
        else:
            for k in range(int(depth)):
                grower.step(last=k + 1 == depth)
