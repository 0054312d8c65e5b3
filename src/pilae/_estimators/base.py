"""What the classifier and the regressor share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import sklearn
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing
from sklearn.utils.validation import has_fit_parameter

from .._arrays import Array
from .._base.progress import CallbackSupportMixin
from .._base.scalars import seed_of
from .._data.columns import Columns
from .._data.gaps import GapsFound
from .._data.intake import Intake
from .._data.rows import Rows
from .._data.sources import Column
from .._data.targets import Encoding, Targets
from .._engine.bounds import Bounds
from .._network.linear import linear_peer
from .._network.structure import WidthRule
from .._search.fit import Result, fit_network
from .._search.spec import HeadSpec, Spec
from ..export import OnnxMixin
from ..save import SaveMixin
from . import parameters, update
from .asking import Asking
from .autoencoder import PILAutoencoder, features_of_layer, layer_spec, template_of
from .fitted import FittedModel, attribute, stats_of
from .shln import SHLN
from .updating import Updating

if TYPE_CHECKING:
    from ..report import Report


def head_has(method: str) -> Callable[[BasePILAE], bool]:
    """For methods that a head estimator may lack; the built-in heads have them all."""

    def check(self: BasePILAE) -> bool:
        if self.fitted_ is not None:
            return self.fitted_.head.offers(method)
        return self._own_head or hasattr(self.head, method)

    return check


class BasePILAE(
    parameters.TemplateParams,
    SaveMixin,
    OnnxMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    Updating,
    Asking,
):
    """What classifier and regressor share."""

    network_ = attribute("network")
    layers_ = attribute("network.layers")
    head_ = attribute("head", settled=True)
    head_width_ = attribute("head.width")
    ridge_ = attribute("head.output.ridge")
    ridge_path_ = attribute("head.output.path")
    width_path_ = attribute("head.output.width_path")
    search_ = attribute("search")
    fit_stats_ = attribute("stats")
    feature_importances_ = attribute("importances")
    loo_score_ = attribute("loo_score")
    loo_predictions_ = attribute("loo_predictions")
    loo_is_stale_ = attribute("loo_is_stale")
    approximate_ = attribute("approximate")
    _n_features_out = attribute("features_out")

    _templates: ClassVar[dict[str, str]] = {"layer": "PILAutoencoder()", "head": "SHLN()"}
    _heads: ClassVar[tuple[str, ...]]
    _head_example: ClassVar[str]
    _takes_gaps = True
    _rules: ClassVar[parameters.Rules]

    @property
    def n_passes_(self) -> int:
        """Passes over the data."""
        return self.fit_stats_["passes"]

    @property
    def network_hash_(self) -> str:
        """Equal for models of the same network: features, neurons, ridge, dtype. Output weights do not count."""
        fitted = self._read()
        try:
            return update.network_hash(fitted, "network_hash_")
        except ValueError as error:  # no such attribute, to dir() and hasattr()
            raise AttributeError(str(error)) from error

    @property
    def _own_head(self) -> bool:
        """Whether the head is one of pilae's, and not an estimator of somebody else."""
        return isinstance(self.head, (str, SHLN))

    # ------------------------------------------------------------------------------------------- fitting

    def _checked(self) -> tuple[PILAutoencoder, HeadSpec]:
        """How layers and head are built, after all parameters were looked at. No random number is drawn."""
        parameters.check(self, {**parameters.NETWORK, **self._rules})
        parameters.check_listed(self)
        return template_of(self), self._head_spec()

    def _spec(self) -> Spec:
        """The parameters, checked."""
        layer, head = self._checked()
        return Spec(
            depth=parameters.unless_auto(self.depth, int),
            width=WidthRule.of(self.width),
            max_depth=int(self.max_depth),
            growth=self.growth,
            layer=layer_spec(layer, keep=False),
            anchors=layer.anchors,
            head=head,
            skip=parameters.unless_auto(self.skip, bool),
            branches=parameters.unless_auto(self.branches, int) or 1,
            ridge=self.ridge if isinstance(self.ridge, str) else float(self.ridge),
            input_scaling=self.input_scaling,
            fit_rows=self.fit_rows,
            keep_statistics=bool(self.keep_statistics),
            seed=seed_of(self.random_state),
        )

    def _head_spec(self) -> HeadSpec:
        head = self.head
        if isinstance(head, SHLN):
            return head._spec()
        if isinstance(head, str) and head in self._heads:
            return HeadSpec(head)
        if isinstance(head, (str, type)) or not hasattr(head, "fit") or not hasattr(head, "predict"):
            names, example = ", ".join(map(repr, self._heads)), self._head_example
            raise parameters.bad(self, "head", f"{names}, an SHLN, or a scikit-learn estimator such as {example}")
        return HeadSpec("estimator", estimator=head)

    def _fitted_to(
        self, spec: Spec, rows: Rows, columns: Columns, targets: Targets, encoding: Encoding | None, fit_params: dict
    ) -> FittedModel:
        """Grow the network on the rows, and fit the head."""
        start = time.perf_counter()
        rows.progress.begin(self)
        # only a head that is an estimator of its own reads targets as they came
        y = None if spec.head.linear or encoding is None else targets.original(encoding)
        try:
            result, targets = self._network_for(spec, rows, y, fit_params, targets)
        finally:
            rows.progress.close()
        columns = replace(columns, intake=rows.intake or Intake.without_gaps(result.means))
        moved = None if result.importances is None else columns.summed(result.importances)
        stats = stats_of(rows, time.perf_counter() - start)
        rows.progress.summary(stats)
        fitted = FittedModel(columns, result.network, result.head, targets, result.table, stats)
        fitted = replace(fitted, halves=result.halves, importances=moved, optimism=result.optimism)
        peer = linear_peer(result.network, result.head, rows, result.scored, targets)
        bounds = Bounds.of(result.extent.low, result.extent.high, result.spread)
        fitted = replace(fitted, linear=peer, bounds=bounds).judged(result.scored)
        rows.progress.end()
        return fitted

    def _network_for(
        self, spec: Spec, rows: Rows, y: Column, fit_params: dict, targets: Targets
    ) -> tuple[Result, Targets]:
        """The network, and what its outputs mean."""
        try:
            return fit_network(spec, rows, y, fit_params, targets.merits), targets
        except GapsFound:
            rows.learn_intake()
            return fit_network(spec, rows, y, fit_params, targets.merits), targets

    def _check_loaded(self) -> None:
        fitted = self._read()
        fitted.check()
        rows = Rows(np.zeros((1, fitted.columns.width)), fitted.network.space, dtype=fitted.network.dtype)
        fitted.head.try_out(rows.map(fitted.network, fitted.widest))

    # ----------------------------------------------------------------------------------------- predicting

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
        return features_of_layer(self, X, layer)

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

    # -------------------------------------------------------------------------------------------- routing

    def get_metadata_routing(self):
        """Metadata routing: `sample_weight` for this estimator, and what a head estimator asks for."""
        if self._own_head:
            return super().get_metadata_routing()
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(head=self.head, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        )

    def _head_fit_params(
        self, sample_weight: np.ndarray | None, params: dict, groups: Any = None, *, given: bool
    ) -> dict:
        """What the head's fit gets: by routing where it is on, otherwise weights and groups if the head takes them.

        `given`: the user passed sample_weight (and it is not from class_weight alone).
        """
        if self._own_head:
            if params:
                raise TypeError(f"{type(self).__name__}.fit got unexpected arguments {sorted(params)}.")
            return {} if sample_weight is None else {"sample_weight": sample_weight}
        routing = sklearn.get_config()["enable_metadata_routing"]
        # the network uses sample_weight and groups itself, so the head is offered them too
        wanted = get_routing_for_object(self.head).consumes("fit", ["sample_weight", "groups"]) if routing else ()
        searches = isinstance(self.head, (GridSearchCV, RandomizedSearchCV)) or has_fit_parameter(self.head, "groups")
        if groups is not None and ("groups" in wanted if routing else searches):
            params = {**params, "groups": groups}
        if routing:
            asked = "sample_weight" in wanted
            offered = (
                {"sample_weight": sample_weight, **params} if given or (asked and sample_weight is not None) else params
            )
            return dict(process_routing(self, "fit", **offered).head.fit)
        if sample_weight is not None and has_fit_parameter(self.head, "sample_weight"):
            return {"sample_weight": sample_weight, **params}
        return dict(params)
