"""What the classifier and the regressor share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import sklearn
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing
from sklearn.utils.validation import has_fit_parameter

from .._arrays import Array
from .._base.progress import CallbackSupportMixin
from .._base.scalars import seed_of
from .._data.check import check_weight, scaled_weight
from .._data.columns import Columns
from .._data.gaps import GapsFound
from .._data.intake import Intake
from .._data.opening import is_streamed, rows_to_ask, stream_to_add
from .._data.rows import Rows, times_factor, unit_of
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
        return update.network_hash(self._read(), "network_hash_")

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
            branches=parameters.unless_auto(self.branches, int),
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
        bounds = Bounds.of(result.extent.low, result.extent.high)
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

    # ------------------------------------------------------------------------------------------ updating

    def _first_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any, fit_params: dict) -> FittedModel:
        raise NotImplementedError

    def _later_rows(
        self, fitted: FittedModel, method: str, X: Any, y: Any, sample_weight: Any, classes: Any = None
    ) -> tuple[Rows, Targets]:
        """Rows for an update by `method`, and the targets there are with them."""
        running, network = self._running(), fitted.network
        if is_streamed(X):
            fitted.check_streamed()
            kind = type(fitted.targets)
            stream = stream_to_add(running, network, fitted.columns, X, y, sample_weight, kind)
            targets = fitted.targets.met(stream.look, classes)
            stream.read_as(targets)
            stream.factor = self._later_factor(targets)
            return stream, targets
        rows = rows_to_ask(running, network, fitted.columns, X, method)
        w = scaled_weight(check_weight(sample_weight, rows.n), rows.n, fitted.weight_exponent)  # in the units of `fit`
        targets = fitted.targets.read(y, rows, w, running.name, classes)
        rows.weight, rows.unit = times_factor(self._later_factor(targets), rows.codes, w, unit_of(w))
        return rows, targets

    def _later_factor(self, targets: Targets) -> np.ndarray | None:
        """The weight of each class of rows that come after `fit`."""
        return None

    def _check_additive(self, method: str) -> None:
        """Whether weights of rows do not depend on other rows."""
        raise NotImplementedError

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any, how: str) -> Self:
        self._checked()
        if how not in ("head", "all"):
            raise ValueError(f"'update' must be 'head' or 'all'. Got {how!r} instead.")
        self._check_additive("partial_fit")

        def step(fitted: FittedModel | None) -> FittedModel:
            if fitted is None:
                fitted = self._first_fit(X, y, classes, sample_weight, {})
                update.statistics(fitted, "partial_fit")
                return fitted
            update.statistics(fitted, "partial_fit")
            rows, targets = self._later_rows(fitted, "partial_fit", X, y, sample_weight, classes)
            return update.added(fitted, rows, targets, layers=how == "all")

        return self._updated(step, X, y, sample_weight)

    def forget(self, X, y=None, sample_weight=None, remaining=None):
        """Remove rows: afterwards the output layer is one that never saw them.

        What the features, the anchor rows and a metric from labels learnt from them stays; with `remaining` the whole
        network is fitted again on those rows instead, and X is not looked at. Rows that cannot have been in are
        refused, and nothing is changed. Leave-one-out results of single rows (`loo_predictions_`, what intervals are
        made of) go with them: `recalibrate` brings them back for rows that stay.

        Parameters
        ----------
        X, y, sample_weight
            The rows, with the targets and the weights they came with.
        remaining : (X, y) or (X, y, sample_weight) or a source with targets, optional
            All rows that stay.

        Returns
        -------
        self
        """
        self._read()
        if remaining is not None:
            if isinstance(remaining, (tuple, list)) and len(remaining) not in (2, 3):
                raise ValueError(
                    f"'remaining' must be (X, y), (X, y, sample_weight) or a source, but it has {len(remaining)} parts."
                )
            return self.fit(*remaining) if isinstance(remaining, (tuple, list)) else self.fit(remaining)
        self._check_additive("forget")

        def step(fitted: FittedModel | None) -> FittedModel:
            assert fitted is not None
            update.exact_statistics(fitted, "forget")
            rows, targets = self._later_rows(fitted, "forget", X, y, sample_weight)
            return update.forgotten(fitted, rows, targets)

        return self._updated(step, X, y, sample_weight)

    def fork(self):
        """The same network with no rows in it, to be filled elsewhere by `partial_fit` and merged by `merge`."""
        new = sklearn.clone(self)
        new.fitted_ = update.forked(self._read())
        return new

    def merge(self, *others):
        """Add the rows of other models of the same network (see `fork`), in place.

        Returns
        -------
        self
        """
        self._read()
        self._check_additive("merge")
        theirs = []
        for number, other in enumerate(others, 1):
            if type(other) is not type(self) or other.fitted_ is None:
                raise ValueError(f"Model {number} to merge is not a fitted {type(self).__name__}.")
            other._check_additive("merge")
            theirs.append(other.fitted_)
        return self._updated(lambda fitted: update.merged(fitted, theirs))

    def recalibrate(self, X, y=None, sample_weight=None):
        """Leave-one-out results, probabilities and intervals for the model as it is now, from rows that are in it.

        `partial_fit`, `forget` and `merge` leave them as they were (`loo_is_stale_`).

        Parameters
        ----------
        X, y, sample_weight
            Rows that are in the model; at most 10,000 distinct ones are used.

        Returns
        -------
        self
        """
        self._read()

        def step(fitted: FittedModel | None) -> FittedModel:
            assert fitted is not None
            update.statistics(fitted, "recalibrate")
            fitted.ready()
            rows, targets = self._later_rows(fitted, "recalibrate", X, y, sample_weight)
            return update.recalibrated(fitted, rows, targets, seed_of(self.random_state))

        return self._updated(step, X, y, sample_weight)

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

    def _head_fit_params(self, sample_weight: np.ndarray | None, params: dict, *, given: bool) -> dict:
        """What the head's fit gets: by routing where it is on, otherwise the weights if the head takes them.

        `given`: the user passed sample_weight (and it is not from class_weight alone).
        """
        if self._own_head:
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
