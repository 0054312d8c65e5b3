"""What the classifier and the regressor share."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing
from sklearn.utils.validation import has_fit_parameter

from .._arrays import Array
from .._arrays.threads import lent
from .._base.progress import CallbackSupportMixin, peak_megabytes
from .._base.saveable import saveable
from .._data.check import check_weight, scaled_weight, tamed_weight
from .._data.dask import lazy_on_dask
from .._data.opening import rows_to_ask
from .._data.rows import Rows
from .._engine.activations import ACTIVATIONS
from .._network.head import LinearHead
from .._search.builder import MOST_BRANCHES
from .._search.fit import fit_network
from ..export import OnnxMixin
from ..save import SaveMixin
from . import parameters
from .stack import layer_number
from .update import UpdateMixin
from .whole import at_one_moment

if TYPE_CHECKING:
    from ..report import Report


def head_has(method: str):
    """For methods that a head estimator may lack; the built-in heads have them all."""

    def check(self) -> bool:
        if not isinstance(self.head, str):
            fitted = getattr(self, "head_", None)
            getattr(self.head if fitted is None else fitted.estimator, method)  # AttributeError: it has none
        return True

    return check


@saveable
class LeftOut(NamedTuple):
    """Rows of the training data, and what is predicted for each by an output layer that has not seen it."""

    rows: np.ndarray
    predicted: np.ndarray


class BasePILAE(
    SaveMixin,
    OnnxMixin,
    UpdateMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """What classifier and regressor share."""

    def __init__(
        self,
        depth="auto",
        width="auto",
        max_depth=5,
        growth="loo",
        encoder="rows",
        anchors="spread",
        encoder_ridge="auto",
        activation="sigmoid",
        gain=(4, 1),
        decoder_ridge=1e-3,
        decoder_l1=0.0,
        tied=True,
        skip="auto",
        branches="auto",
        head="shln",
        head_width="auto",
        head_encoder_ridge="auto",
        head_anchors="auto",
        direct_links="auto",
        head_activation="auto",
        ridge="auto",
        input_scaling="auto",
        fit_rows=None,
        device=None,
        dtype=None,
        block_rows="auto",
        keep_statistics=True,
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
        self.skip = skip
        self.branches = branches
        self.head = head
        self.head_width = head_width
        self.head_encoder_ridge = head_encoder_ridge
        self.head_anchors = head_anchors
        self.direct_links = direct_links
        self.head_activation = head_activation
        self.ridge = ridge
        self.input_scaling = input_scaling
        self.fit_rows = fit_rows
        self.device = device
        self.dtype = dtype
        self.block_rows = block_rows
        self.keep_statistics = keep_statistics
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------------------------------- fitting

    def _check_params(self) -> None:
        parameters.check_network(self)
        parameters.check_running(self)
        parameters.check_flag(self, "skip", ("auto",))
        parameters.check_count(self, "branches", ("auto",))
        if self.branches != "auto" and self.branches > MOST_BRANCHES:
            raise parameters.bad(self, "branches", f"'auto' or an integer from 1 to {MOST_BRANCHES}")
        parameters.check_count(self, "head_width", ("auto", "formula"))
        parameters.check_choice(self, "head_activation", ("auto", *ACTIVATIONS))
        parameters.check_number(self, "head_encoder_ridge", ("auto",), infinite=True)
        parameters.check_choice(self, "head_anchors", ("auto", "rows", "pairs"))
        parameters.check_flag(self, "direct_links", ("auto",))
        parameters.check_flag(self, "keep_statistics")
        parameters.check_number(self, "ridge", ("auto", "guo2003"))
        if isinstance(self.head, str):
            parameters.check_choice(self, "head", self._heads)
        elif not hasattr(self.head, "fit") or isinstance(self.head, type):
            raise parameters.bad(self, "head", f"one of {self._heads} or a scikit-learn estimator (an object with fit)")

    def _fit_weight(self, sample_weight: Any, n: int) -> np.ndarray | None:
        w, exponent = tamed_weight(sample_weight, n)
        if exponent:
            self.weight_exponent_ = exponent
        return w

    def _later_weight(self: Any, sample_weight: Any, n: int) -> np.ndarray | None:
        """Of rows that come or go after `fit`, in its units."""
        return scaled_weight(check_weight(sample_weight, n), n, self.weight_exponent_)

    def _fit_rows(self, rows: Rows, y: np.ndarray | None, fit_params: dict) -> None:
        """Grow the network on `rows`, fit the head, set the fitted attributes."""
        start = time.perf_counter()
        rows.progress.begin(self)
        try:
            result = fit_network(self, rows, y, fit_params)
        finally:
            rows.progress.close()
        seconds = time.perf_counter() - start
        self.fit_stats_ = {
            "rows": rows.n,
            "passes": rows.passes,
            "seconds": seconds,
            "rows_per_second": rows.n * rows.passes / seconds,
            "peak_megabytes": peak_megabytes(),
        }
        rows.progress.summary(self.fit_stats_)
        head = result.head
        self.network_, self.layers_, self.head_ = result.network, result.network.layers, head
        self.search_ = result.table
        self.approximate_ = self.loo_is_stale_ = False
        self.n_passes_ = rows.passes
        self._n_features_out = self.layers_[-1].width if self.layers_ else rows.d
        if isinstance(head, LinearHead):
            self.head_width_, self.ridge_ = head.width, head.output.ridge
            self.ridge_path_ = head.output.path
            if head.output.width_path is not None:
                self.width_path_ = head.output.width_path
        rows.progress.end()

    # ----------------------------------------------------------------------------------------- predicting

    def _settle(self) -> None:
        head = self.head_
        if isinstance(head, LinearHead) and head.output.moments is not None and head.output.moments.count:
            self._current_head()

    def _check_loaded(self) -> None:
        width = self.network_.check_shapes(self.n_features_in_)
        if isinstance(self.head_, LinearHead):
            self.head_.check_shapes(width)
        zeros = np.zeros((1, self.n_features_in_))
        rows = Rows(zeros, self.network_.space, block_rows=self.block_rows, dtype=self.network_.dtype)
        F, head = rows.map(self.network_, self._widest), self.head_
        if isinstance(head, LinearHead):
            outputs = head.scores(F)
            n_outputs = len(self.classes_) if hasattr(self, "classes_") else self.n_outputs
            moments = head.output.moments
            if head.output.solved and outputs.shape != (1, n_outputs):
                raise ValueError(f"{outputs.shape[1]} outputs for {n_outputs} targets")
            if moments is not None and moments.count and moments.ab.shape != (head.output.coef.shape[0], n_outputs):
                raise ValueError(f"sums of shape {moments.ab.shape} for {n_outputs} targets")
        elif not isinstance(head.estimator, BaseEstimator):
            raise TypeError(f"the head is a {type(head.estimator)}")
        else:
            head.features(F)

    @property
    def _widest(self) -> int:
        widths = [layer.width for layer in self.layers_]
        return max([self.n_features_in_, getattr(self, "head_width_", 0), *widths])

    def _scores(self, X: Any, method: str) -> Array:
        """Outputs of a linear head, one column per class or target."""
        rows, head = rows_to_ask(self, X, method), self._current_head()
        return rows.map(lambda block: head.scores(self.network_(block)), self._widest)

    def _ask_estimator(self, method: str, X: Any) -> Any:
        rows, head = rows_to_ask(self, X, method), self._current_head()
        ask = getattr(head, method, None) or getattr(head.estimator, method)

        def answer(block: Array) -> Any:
            F = head.features(self.network_(block))
            with lent(F.size):
                return ask(F)

        return rows.map(answer, self._widest)

    @lazy_on_dask
    @at_one_moment
    def transform(self, X: Any, layer: int | None = None) -> Array:
        """Features of the autoencoder layers (the head's input).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        layer : int, optional
            Stop after this many layers; by default the last.

        Returns
        -------
        array of shape (n_samples, width of that layer)
        """
        rows = rows_to_ask(self, X, "transform")
        depth = layer_number(self, layer)
        return rows.map(lambda block: self.network_(block, depth), self._widest)

    def report(
        self, X: Any = None, y: Any = None, *, title: str | None = None, image_shape: tuple[int, ...] | None = None
    ) -> Report:
        """What this model is, why, and how good on test rows: shown in a notebook, or saved as HTML, Markdown or JSON.

        Parameters
        ----------
        X, y : test rows and their targets, optional
        title : str, optional
        image_shape : tuple, optional
            How to draw a row; rows that look like square images are drawn anyway.

        Returns
        -------
        Report
            `save(path)` writes `.html`, `.md` or `.json`; `summary` is a dict of everything it says.
        """
        from ..report import make_report

        return make_report(self, X, y, title=title, image_shape=image_shape)

    def get_metadata_routing(self):
        """Metadata routing: `sample_weight` for this estimator, and what a head estimator asks for."""
        if isinstance(self.head, str):
            return super().get_metadata_routing()
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(head=self.head, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        )

    def _head_fit_params(self, sample_weight: np.ndarray | None, params: dict, *, given: bool) -> dict:
        """What the head's fit gets: by routing where it is on, otherwise the weights if the head takes them.

        `given`: the user passed sample_weight (and it is not from class_weight alone).
        """
        if isinstance(self.head, str):
            if params:
                raise TypeError(f"{type(self).__name__}.fit got unexpected arguments {sorted(params)}.")
            return {} if sample_weight is None else {"sample_weight": sample_weight}
        if sklearn.get_config()["enable_metadata_routing"]:
            # the network uses sample_weight itself, so the head is offered it too
            asked = get_routing_for_object(self.head).fit.requests.get("sample_weight") is True
            offered = (
                {"sample_weight": sample_weight, **params} if given or (asked and sample_weight is not None) else params
            )
            return dict(process_routing(self, "fit", **offered).head.fit)
        if sample_weight is not None and has_fit_parameter(self.head, "sample_weight"):
            return {"sample_weight": sample_weight, **params}
        return dict(params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        tags.array_api_support = True
        return tags
