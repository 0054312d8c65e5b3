"""Builds on some rows what a plan says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array, namespace, to_numpy
from .._data.keys import row_keys
from .._data.rows import Rows
from .._engine.linalg import Gram, PrimalGram
from .._engine.moments import Moments
from .._engine.scaling import Scaling
from .._network import structure
from .._network.growth import LAYER_RIDGE, Grower, input_gram
from .._network.head import EstimatorHead, LinearHead, fit_estimator_head
from .._network.layer import LayerSpec
from .._network.network import Network, Seen
from .._network.neurons import fit_hidden
from .._network.output import fit_output
from .._network.structure import Plan
from .._network.survey import Survey

HEAD_RIDGE = 1e-6
"""encoder_ridge="auto" for the head's neurons on autoencoder features where nothing is searched."""

HEAD_RIDGE_ON_INPUT = 1.0
"""The same on the input itself (depth 0)."""

BRANCH_ACTIVATIONS = ("tanh", "relu", "sin", "sigmoid")
"""Of stacks side by side, in this order, whatever the first has."""

MOST_BRANCHES = 4


def head_encoder_ridge(params: Any) -> float | str:
    """Of the head's neurons: its own, or the one given for all encoders."""
    return params.encoder_ridge if params.head_encoder_ridge == "auto" else params.head_encoder_ridge


class Products(NamedTuple):
    """Dtypes of the products of Grams: of layers below others, of the features the head sees.

    The input's is always made in float64: squares of raw numbers may not fit into float32.
    """

    layers: str = "float64"
    features: str = "float64"


def layer_ridge(params: Any) -> float:
    return LAYER_RIDGE if params.encoder_ridge == "auto" else float(params.encoder_ridge)


@dataclass
class _Input:
    """What a head is built on: the newest features, and the input scaling, spectrum and anchors of its neurons."""

    rows: Rows
    scored: Rows
    features: Callable[[Array], Array]
    seen: Seen
    scaling: Scaling | None
    gram: Gram
    anchors: Array


class Builder:
    """Builds what a plan says, on some rows. With `hold` the features are kept for the next head: few rows only."""

    def __init__(
        self,
        params: Any,
        rows: Rows,
        found: Survey,
        seed: int,
        *,
        hold: bool = False,
        products: Products | None = None,
    ) -> None:
        self.params, self.rows, self.found, self.seed, self.hold = params, rows, found, seed, hold
        self.products = products or Products()
        self.scale = _target_scale(rows, found)
        self._inputs: dict[tuple, _Input] = {}
        self._others: dict[tuple[str, int, int], Network] = {}
        self._keys: tuple[np.ndarray, np.ndarray] | None = None

    def grower(self, scaling: str, branch: int = 0) -> Grower:
        """Of the layers themselves, or of another stack beside them: other anchors, another activation."""
        params, found = self.params, self.found
        keep = bool(params.keep_statistics) and not self.hold and branch == 0
        spec = LayerSpec(
            params.encoder,
            layer_ridge(params),
            _beside(params.activation)[branch - 1] if branch else params.activation,
            params.gain,
            params.decoder_ridge,
            False,
            keep,
            params.tied,
            params.decoder_l1,
        )
        exact = "float64" in self.products
        if branch:
            start = int(found.anchors.shape[0]) * branch // MOST_BRANCHES
            xp = namespace(found.anchors)
            found = replace(found, anchors=xp.concat([found.anchors[start:, :], found.anchors[:start, :]], axis=0))
        return Grower(self.rows, found, spec, params.width, scaling, "float64" if exact else "float32")

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
            while grower.depth < self.params.max_depth and not grower.reached_full_rank(self.params.growth):
                grower.step()
        for k in range(plan.depth):
            grower.step(product=self.products.layers if k + 1 < plan.depth else self.products.features)
        return grower

    def head(
        self, grower: Grower, plan: Plan, y: np.ndarray | None, fit_params: dict, near: float | None
    ) -> LinearHead | EstimatorHead:
        """The head that stays. `near` is the output ridge that was best for it on fewer rows."""
        params = self.params
        if not isinstance(params.head, str) or params.head == "softmax":
            network = self.network(grower, plan)
            moments = self._feature_moments(grower, network) if params.head == "softmax" else None
            return fit_estimator_head(self.rows, network, params.head, y, fit_params, moments)
        nested = params.head_width == "auto" and plan.head == "shln"
        if params.head_width == "formula":
            rank, n_rows = input_gram(self.found, self.rows, None).rank, self.found.distinct
            width = structure.formula_width(rank, n_rows, self._available(plan))
        else:
            width = self._widest(plan) if params.head_width == "auto" else int(params.head_width)
        if width > self._available(plan):  # as many neurons as rows, and the search found pairs: they need one row more
            plan = plan._replace(neurons="rows")
        return self.linear(grower, plan, width, params.ridge, nested=nested, keep=params.keep_statistics, near=near)

    def _available(self, plan: Plan) -> int:
        """Most neurons the anchors are enough for."""
        return max(1, int(self.found.anchors.shape[0]) - (plan.neurons == "pairs"))

    def _widest(self, plan: Plan) -> int:
        return max(1, min(structure.widest_head(self.found.distinct), self._available(plan)))

    def linear(
        self,
        grower: Grower,
        plan: Plan,
        width: int,
        ridge: float | str,
        *,
        nested: bool = False,
        keep: bool = False,
        near: float | None = None,
    ) -> LinearHead:
        """A head of hidden neurons, or none, on the newest features."""
        given = self.input(grower, plan)
        hidden = None
        if plan.head == "shln":
            hidden = fit_hidden(self.rows, given.scaling, given.gram, given.anchors, width, plan, self.seed)
        columns = int(given.anchors.shape[1]) if hidden is None else width + hidden.links
        return fit_output(
            given.rows,
            given.scored,
            given.features,
            given.seen,
            hidden,
            columns,
            ridge,
            neurons=self._are_neurons(grower, width),
            scale=self.scale,
            nested=nested,
            keep=keep,
            near=near,
            raw_columns=self.rows.d if self.hold or ridge == "guo2003" else None,
            label=f"output layer, {columns} columns",
        )

    def _are_neurons(self, grower: Grower, width: int) -> np.ndarray:
        """Which scored rows are among the anchors, by value: equal rows with other targets count too."""
        assert self.found.scored is not None
        if self._keys is None:
            self._keys = row_keys(self.found.scored.whole().X, self.seed), row_keys(grower.anchors, self.seed)
        scored, anchors = self._keys
        return np.isin(scored, anchors[: width + 1])

    def input(self, grower: Grower, plan: Plan) -> _Input:
        """What the head sees of the newest features, or of all. Those of layers are standardised; raw input is only
        centred."""
        network = self.network(grower, plan)
        wide = network is not grower.network
        key = grower.scaling_kind, grower.depth, network.skip, len(network.others)
        if key not in self._inputs:
            moments, space = grower.moments, self.rows.space
            if wide:
                moments = self._feature_moments(grower, network)
            if moments is not None:
                standard = Scaling.standard(moments.mean_a, moments.variance_a())
                scaling: Scaling | None = standard
                gram: Gram = PrimalGram(
                    moments.gram(centred=True, scale=standard.inverse), moments.weight, moments.product
                )
            else:
                scaling = None if grower.scaling_kind == "standard" else Scaling.centring(self.found.moments.mean_a)
                gram = input_gram(self.found, self.rows, network.scaling or scaling)
            anchors = network(grower.anchors)
            anchors = space.asarray(anchors if scaling is None else scaling(anchors), "float64")
            rows, scored = self.rows, self.found.scored
            features: Callable[[Array], Array] = network
            seen = grower.seen if grower.rows is rows and not wide else Seen(network)
            assert scored is not None
            if self.hold:
                held = _then(network, scaling)
                rows, scored, features, scaling = rows.mapped(held), scored.mapped(held), _then(), None
                seen = Seen(features)
            self._inputs[key] = _Input(rows, scored, features, seen, scaling, gram, anchors)
        return self._inputs[key]

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


def target_variance(found: Survey) -> np.ndarray:
    return to_numpy(found.targets.variance_a())


def _target_scale(rows: Rows, found: Survey) -> np.ndarray:
    """What one unit of error is, for each output: a standard deviation for targets or labels, 1 for classes."""
    if rows.n_classes:
        return np.ones(rows.n_classes)
    spread = np.sqrt(target_variance(found))
    return np.where(spread > 0, spread, 1.0)
