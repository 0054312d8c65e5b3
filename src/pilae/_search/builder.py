"""Builds on some rows what a plan says."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from .._arrays import Array, namespace, take_rows, to_numpy
from .._data.groups import LEAST_LEFT, spread
from .._data.halves import Halves
from .._data.keys import among, row_keys
from .._data.rows import Rows
from .._data.sources import at
from .._engine.linalg import Gram
from .._engine.moments import Moments
from .._engine.scaling import Scaling
from .._engine.scores import Scored
from .._network.fit_output import CHOICE_ROWS, TRIAL_CHOICE_ROWS, HeadInput, OutputSpec
from .._network.growth import Grower, Scalings, input_gram, primal_gram
from .._network.head import EstimatorHead, Head, LinearHead, fit_estimator_head, softmax_head
from .._network.metric import NO_SHAPE, Shape
from .._network.network import FeatureCache, Network
from .._network.neurons import fit_hidden
from .._network.solving import fit_output
from .._network.structure import Plan, formula_width, second_width, widest_head
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


@dataclass
class NeuronInput(HeadInput):
    """The same, and what neurons are made from: a scaling, then the spectrum and the anchors under it, which are made
    where somebody asks for them."""

    scaling: Scaling | None
    make_gram: Callable[[], Gram]
    make_anchors: Callable[[], Array]

    @cached_property
    def gram(self) -> Gram:
        return self.make_gram()

    @cached_property
    def anchors(self) -> Array:
        return self.make_anchors()


class Builder:
    """Builds what a plan says, on some rows. With `hold` the features are kept for the next head: few rows only.

    With `halves` the neurons of a head are rows of the one that shapes; `scalings` are those of all rows, where these
    are only some.
    """

    def __init__(
        self,
        spec: Spec,
        rows: Rows,
        survey: Survey,
        *,
        hold: bool = False,
        products: Products | None = None,
        halves: Halves | None = None,
        scalings: Scalings | None = None,
    ) -> None:
        self.spec, self.rows, self.survey, self.hold = spec, rows, survey, hold
        self.products, self.halves, self.scalings = products or Products(), halves, scalings or Scalings(survey)
        self.shaping = int(survey.anchors.shape[0])
        """So many of the first anchors may become neurons of a head."""
        if halves is not None:
            shapes = halves.shapes(survey.anchors, survey.anchor_groups)
            order = np.argsort(~shapes, kind="stable")  # layers, which know no labels, take the others too
            anchors, groups = take_rows(survey.anchors, order), at(survey.anchor_groups, order)
            self.survey = replace(survey, anchors=anchors, anchor_groups=groups)
            self.shaping = int(shapes.sum())
        variance = to_numpy(survey.targets.variance_a())
        self.scale = np.where((variance > 0) & (rows.n_classes == 0), np.sqrt(variance), 1.0)
        """What one unit of error is, for each output: a standard deviation for targets or labels, 1 for classes."""
        self._inputs: dict[tuple, NeuronInput] = {}
        self._others: dict[tuple[str, int, int], Network] = {}

    def grower(self, scaling: str, branch: int = 0) -> Grower:
        """Of the layers themselves, or of another stack beside them: other anchors, another activation."""
        survey, layer = self.survey, self.spec.layer
        if branch:
            others = [name for name in BRANCH_ACTIVATIONS if name != layer.activation]
            layer = layer._replace(activation=others[branch - 1])
            start = int(survey.anchors.shape[0]) * branch // MOST_BRANCHES
            turned = [survey.anchors[start:, :], survey.anchors[:start, :]]
            survey = replace(survey, anchors=namespace(survey.anchors).concat(turned, axis=0))
        layer = layer._replace(keep_statistics=self.spec.keep_statistics and not self.hold and branch == 0)
        exact = "float64" in self.products
        product = "float64" if exact else "float32"
        return Grower(self.rows, survey, layer, self.spec.width, scaling, product, self.scalings)

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

    def head(
        self,
        grower: Grower,
        plan: Plan,
        y: np.ndarray | None,
        fit_params: dict,
        near: float | None,
        shape: Shape,
        *,
        second: bool = False,
    ) -> Head:
        """The head that stays. `near` is the output ridge that was best for it on fewer rows; `second`: it is for a
        network that stands beside another."""
        head = self.spec.head
        if not head.linear:
            network = self.network(grower, plan)
            if head.estimator is None:
                unfitted = softmax_head(self._feature_moments(grower, network))
            else:
                unfitted = EstimatorHead(clone(head.estimator))
            return fit_estimator_head(unfitted, self.rows, network, y, fit_params)
        anchors = int(self.survey.anchors.shape[0]) if head.width or head.formula else self.shaping
        available = max(1, anchors - (plan.neurons == "pairs"))
        if head.formula:
            rank, n_rows = input_gram(self.survey, self.rows, None).rank, self.survey.distinct
            width = formula_width(rank, n_rows, available)
        else:
            widest = widest_head(self.survey.distinct, self.rows.space)
            width = head.width or max(1, min(second_width(widest) if second else widest, available))
        if width > available:  # as many neurons as rows, and the search found pairs: they need one row more
            plan = plan._replace(neurons="rows")
        return self.linear(grower, plan, width, near, shape)

    def linear(
        self, grower: Grower, plan: Plan, width: int, near: float | None = None, shape: Shape = NO_SHAPE
    ) -> LinearHead:
        """A head of hidden neurons, or none, on the newest features. On held features it is a candidate: its width is
        what is given here, its sums are not kept, and eq (3) is evaluated too."""
        spec, head_input, hidden = self.spec, self.input(grower, plan), None
        if plan.head == "shln":
            scaling, gram, anchors = head_input.scaling, head_input.gram, head_input.anchors
            hidden = fit_hidden(self.rows, scaling, gram, anchors, width, plan, spec.seed, shape)
        output_spec = OutputSpec(
            spec.ridge,
            self.scale,
            nested=spec.head.width is None and not spec.head.formula and not self.hold,
            keep=spec.keep_statistics and not self.hold,
            near=near,
            raw_columns=self.rows.d if self.hold or spec.ridge == "guo2003" else None,
            strict=self.halves is not None and (self.hold or plan.rounds > 0),
            choice_rows=TRIAL_CHOICE_ROWS if self.hold else CHOICE_ROWS,
        )
        if hidden is None and not grower.depth and not self.hold:  # candidates are compared on the same rows
            shaped = np.zeros(head_input.scored.n, bool)
        elif output_spec.strict:  # a row that judges may equal a neuron of another group: it leaves no neuron with it
            shaped = ~self.judges | self.neurons(width + 1, self.shaping, together=hidden is not None)
        else:
            shaped = self.neurons(width + 1, together=hidden is not None)
        return fit_output(head_input, hidden, shaped, output_spec)

    def neurons(self, count: int, start: int = 0, *, together: bool = True) -> np.ndarray:
        """Which scored rows are among the first anchors; `together`: with their groups, where others are left."""
        scored, anchors = self.keys
        neurons = among(scored, anchors[start:count])
        groups = spread(neurons, self.survey.scored.group)
        return groups if together and np.mean(~groups) >= LEAST_LEFT else neurons

    @cached_property
    def keys(self) -> tuple[np.ndarray, np.ndarray]:
        """Of scored rows and anchors: a row that is a neuron is one by value, equal rows with other targets too."""
        seed = self.spec.seed
        return row_keys(self.survey.scored.whole().X, seed), row_keys(self.survey.anchors, seed)

    def judging(self, head: LinearHead) -> Scored:
        """Results of the rows that judge."""
        loo, at = head.residuals(), self.judges
        return loo if len(at) != len(loo.weight) else loo.at(at)  # or only they are there

    @cached_property
    def judges(self) -> np.ndarray:
        """Which scored rows judge: those of the half that did not shape, whatever a head is."""
        scored = self.survey.scored
        if self.halves is None:
            return np.ones(scored.n, bool)
        return ~self.halves.shapes(scored.whole().X, scored.group)

    def input(self, grower: Grower, plan: Plan) -> NeuronInput:
        """What the head sees of the newest features, or of all. Those of layers are standardised; raw input is only
        centred."""
        network = self.network(grower, plan)
        key = grower.scaling_kind, grower.depth, network.skip, len(network.others)
        if key not in self._inputs:
            self._inputs[key] = self._made_input(grower, network)
        return self._inputs[key]

    def _made_input(self, grower: Grower, network: Network) -> NeuronInput:
        rows, scored, wide = self.rows, self.survey.scored, network is not grower.network
        moments = self._feature_moments(grower, network) if wide else grower.moments
        if moments is not None:
            scaling: Scaling | None = Scaling.standard(moments.mean_a, moments.variance_a())
            gram: Callable[[], Gram] = partial(primal_gram, moments, scaling)
        else:
            scaling = None if grower.scaling_kind == "standard" else Scaling.centring(self.survey.moments.mean_a)
            gram = partial(input_gram, self.survey, rows, network.scaling or scaling)

        def scaled(X: Array) -> Array:
            return network(X) if scaling is None else scaling(network(X))

        def anchors() -> Array:
            return rows.space.asarray(scaled(self.survey.anchors), "float64")

        columns = network.check_shapes(rows.d)
        if self.hold:
            as_they_are = FeatureCache(Network(rows.space, rows.dtype))
            return NeuronInput(rows.mapped(scaled), scored.mapped(scaled), as_they_are, columns, None, gram, anchors)
        cache = grower.cache if grower.rows is rows and not wide else FeatureCache(network)
        return NeuronInput(rows, scored, cache, columns, scaling, gram, anchors)

    def _feature_moments(self, grower: Grower, network: Network) -> Moments:
        """Moments of the features that a head sees, with their whole Gram."""
        if grower.moments is not None and network is grower.network:
            return grower.moments
        return network.moments(self.rows, "features")
