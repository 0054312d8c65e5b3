"""Builds on some rows what a plan says."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from .._arrays import Array, namespace, to_numpy
from .._data.keys import row_keys
from .._data.rows import Rows
from .._engine.linalg import Gram, PrimalGram
from .._engine.moments import Moments
from .._engine.scaling import Scaling
from .._network import structure
from .._network.fit_output import HeadInput, OutputSpec, fit_output
from .._network.growth import Grower, input_gram
from .._network.head import Head, LinearHead, fit_estimator_head
from .._network.network import FeatureCache, Network
from .._network.neurons import fit_hidden
from .._network.structure import Plan
from .._network.survey import Survey
from .spec import MOST_BRANCHES, Spec

BRANCH_ACTIVATIONS = ("tanh", "relu", "sin", "sigmoid")
"""Of stacks side by side, in this order, whatever the first has."""


class Products(NamedTuple):
    """Dtypes of the products of Grams: of layers below others, of the features the head sees.

    The input's is always made in float64: squares of raw numbers may not fit into float32.
    """

    layers: str = "float64"
    features: str = "float64"


class Builder:
    """Builds what a plan says, on some rows. With `hold` the features are kept for the next head: few rows only."""

    def __init__(
        self, spec: Spec, rows: Rows, survey: Survey, *, hold: bool = False, products: Products | None = None
    ) -> None:
        self.spec, self.rows, self.survey, self.hold = spec, rows, survey, hold
        self.products = products or Products()
        self.scale = _target_scale(rows, survey)
        self._inputs: dict[tuple, HeadInput] = {}
        self._others: dict[tuple[str, int, int], Network] = {}
        self._keys: tuple[np.ndarray, np.ndarray] | None = None

    def grower(self, scaling: str, branch: int = 0) -> Grower:
        """Of the layers themselves, or of another stack beside them: other anchors, another activation."""
        survey, layer = self.survey, self.spec.layer
        if branch:
            layer = layer._replace(activation=_beside(layer.activation)[branch - 1])
            start = int(survey.anchors.shape[0]) * branch // MOST_BRANCHES
            turned = [survey.anchors[start:, :], survey.anchors[:start, :]]
            survey = replace(survey, anchors=namespace(survey.anchors).concat(turned, axis=0))
        layer = layer._replace(keep_statistics=self.spec.keep_statistics and not self.hold and branch == 0)
        exact = "float64" in self.products
        return Grower(self.rows, survey, layer, self.spec.width, scaling, "float64" if exact else "float32")

    def network(self, grower: Grower, plan: Plan) -> Network:
        """What the head sees the rows through: the layers, and where the plan says so more."""
        if not grower.depth or (not plan.skip and plan.branches == 1):
            return grower.network
        others = []
        for branch in range(1, plan.branches):
            key = grower.scaling_kind, grower.depth, branch
            if key not in self._others:
                stack = self.grower(grower.scaling_kind, branch)
                for k in range(grower.depth):
                    stack.step(last=k + 1 == grower.depth)
                self._others[key] = stack.network
            others.append(self._others[key])
        return replace(grower.network, skip=plan.skip, others=tuple(others))

    def grow(self, plan: Plan) -> Grower:
        """The layers; depth -1 grows by the paper's rank rule."""
        grower = self.grower(plan.input_scaling)
        if plan.depth < 0:
            while grower.depth < self.spec.max_depth and not grower.reached_full_rank(self.spec.growth):
                grower.step()
        for k in range(plan.depth):
            grower.step(product=self.products.layers if k + 1 < plan.depth else self.products.features)
        return grower

    def head(self, grower: Grower, plan: Plan, y: np.ndarray | None, fit_params: dict, near: float | None) -> Head:
        """The head that stays. `near` is the output ridge that was best for it on fewer rows."""
        head = self.spec.head
        if not head.linear:
            network = self.network(grower, plan)
            moments = self._feature_moments(grower, network) if head.kind == "softmax" else None
            return fit_estimator_head(self.rows, network, head.estimator, moments, y, fit_params)
        nested = head.width is None and not head.formula and plan.head == "shln"
        if head.formula:
            rank, n_rows = input_gram(self.survey, self.rows, None).rank, self.survey.distinct
            width = structure.formula_width(rank, n_rows, self._available(plan))
        else:
            width = self._widest(plan) if head.width is None else head.width
        if width > self._available(plan):  # as many neurons as rows, and the search found pairs: they need one row more
            plan = plan._replace(neurons="rows")
        return self.linear(grower, plan, width, nested=nested, keep=self.spec.keep_statistics, near=near)

    def _available(self, plan: Plan) -> int:
        """Most neurons the anchors are enough for."""
        return max(1, int(self.survey.anchors.shape[0]) - (plan.neurons == "pairs"))

    def _widest(self, plan: Plan) -> int:
        return max(1, min(structure.widest_head(self.survey.distinct), self._available(plan)))

    def linear(
        self,
        grower: Grower,
        plan: Plan,
        width: int,
        *,
        nested: bool = False,
        keep: bool = False,
        near: float | None = None,
    ) -> LinearHead:
        """A head of hidden neurons, or none, on the newest features."""
        given, ridge = self.input(grower, plan), self.spec.ridge
        hidden = None
        if plan.head == "shln":
            assert given.gram is not None
            hidden = fit_hidden(self.rows, given.scaling, given.gram, given.anchors, width, plan, self.spec.seed)
        raw_columns = self.rows.d if self.hold or ridge == "guo2003" else None
        how = OutputSpec(ridge, self.scale, nested, keep, near, raw_columns)
        return fit_output(given, hidden, self._are_neurons(grower, width), how)

    def _are_neurons(self, grower: Grower, width: int) -> np.ndarray:
        """Which scored rows are among the anchors, by value: equal rows with other targets count too."""
        assert self.survey.scored is not None
        if self._keys is None:
            seed = self.spec.seed
            self._keys = row_keys(self.survey.scored.whole().X, seed), row_keys(grower.anchors, seed)
        scored, anchors = self._keys
        return np.isin(scored, anchors[: width + 1])

    def input(self, grower: Grower, plan: Plan) -> HeadInput:
        """What the head sees of the newest features, or of all. Those of layers are standardised; raw input is only
        centred."""
        network = self.network(grower, plan)
        wide = network is not grower.network
        key = grower.scaling_kind, grower.depth, network.skip, len(network.others)
        if key not in self._inputs:
            self._inputs[key] = self._made_input(grower, network, wide)
        return self._inputs[key]

    def _made_input(self, grower: Grower, network: Network, wide: bool) -> HeadInput:
        moments, space = self._feature_moments(grower, network) if wide else grower.moments, self.rows.space
        if moments is not None:
            standard = Scaling.standard(moments.mean_a, moments.variance_a())
            scaling: Scaling | None = standard
            gram: Gram = PrimalGram(moments.gram(centred=True, scale=standard.inverse), moments.weight, moments.product)
        else:
            scaling = None if grower.scaling_kind == "standard" else Scaling.centring(self.survey.moments.mean_a)
            gram = input_gram(self.survey, self.rows, network.scaling or scaling)
        anchors = network(grower.anchors)
        anchors = space.asarray(anchors if scaling is None else scaling(anchors), "float64")
        rows, scored = self.rows, self.survey.scored
        assert scored is not None
        if self.hold:
            held = _then(network, scaling)
            rows, scored, features = rows.mapped(held), scored.mapped(held), _then()
            return HeadInput(rows, scored, features, FeatureCache(features), None, gram, anchors)
        cache = grower.cache if grower.rows is rows and not wide else FeatureCache(network)
        return HeadInput(rows, scored, network, cache, scaling, gram, anchors)

    def _feature_moments(self, grower: Grower, network: Network) -> Moments:
        """Moments of the features that a head sees, with their whole Gram."""
        if grower.moments is not None and network is grower.network:
            return grower.moments
        return self.rows.total(
            partial(Moments, self.rows.space),
            lambda moments, block: moments.add(network(block.X), None, block.w),
            "features",
        )


def _beside(activation: str) -> list[str]:
    """Activations of the stacks beside one with this activation."""
    return [name for name in BRANCH_ACTIVATIONS if name != activation]


def _then(*steps: Callable[[Array], Array] | None) -> Callable[[Array], Array]:
    """One step after another; None is no step."""

    def run(X: Array) -> Array:
        for step in steps:
            X = X if step is None else step(X)
        return X

    return run


def target_variance(survey: Survey) -> np.ndarray:
    return to_numpy(survey.targets.variance_a())


def _target_scale(rows: Rows, survey: Survey) -> np.ndarray:
    """What one unit of error is, for each output: a standard deviation for targets or labels, 1 for classes."""
    if rows.n_classes:
        return np.ones(rows.n_classes)
    spread = np.sqrt(target_variance(survey))
    return np.where(spread > 0, spread, 1.0)
