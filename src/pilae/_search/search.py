"""The choice of a network by leave-one-out: a fixed, small set of candidates on a sample of rows, then one full fit.

Candidates are compared by the leave-one-out loss of their output layer on rows that are not neurons themselves: the
squared error, or for classes and few rows the log-loss of calibrated probabilities (see `LOG_LOSS_ROWS`). The lowest
wins, and a tie goes to the one met first, which is the simpler one. No candidate's features see the targets. A
candidate that does worse than the mean on the rows that are neurons is brittle and not chosen (unless all are): next to
its own row a neuron says something wild, and new rows may come near.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array, namespace, to_numpy
from .._base.scalars import is_integer, seed_of
from .._data.keys import row_keys
from .._data.rows import Rows
from .._data.targets import check_target_size
from .._engine.linalg import Gram, PrimalGram
from .._engine.loo import Scored
from .._engine.moments import FLOAT32_RIDGE, Moments
from .._engine.scaling import Scaling
from .._network import structure
from .._network.head import EstimatorHead, LinearHead, fit_estimator_head, fit_hidden, fit_output, log_losses
from .._network.layer import LayerSpec
from .._network.network import (
    LAYER_RIDGE,
    SCORED_ROWS,
    Grower,
    Network,
    Seen,
    Survey,
    input_gram,
    scored_rows,
    survey,
    too_few_rows,
)
from .._network.structure import Plan


class Round(NamedTuple):
    """How many distinct rows candidates are fitted and scored on, and the most hidden neurons they get."""

    rows: int
    scored: int
    width: int


FIRST_ROUND = Round(rows=4000, scored=1000, width=400)
"""Every candidate, on four rows for each column and at least 2,000. Neurons: one for five rows, at least 200, and at
most a third of the rows."""

LAST_ROUND = Round(rows=15_000, scored=2000, width=2000)
"""The best few again, wider and on more rows: narrow layers favour depth and plain columns."""

FINALISTS = 4

WIDER = 1.4
"""The last round is held if it is wider than the first by this factor."""


def _size_of_last_round(distinct: int) -> Round:
    """LAST_ROUND, or less where the head will be narrow: half its neurons, on eight rows for each."""
    width = min(LAST_ROUND.width, max(structure.widest_head(distinct) // 2, FIRST_ROUND.width))
    return Round(min(LAST_ROUND.rows, max(8 * width, FIRST_ROUND.rows)), LAST_ROUND.scored, width)


def _rows_of_last_round(distinct: int) -> int:
    return _size_of_last_round(distinct).rows


FITTED_ROWS = 10_000
"""fit_rows="auto" tries to do with so many rows for the autoencoders, or ten for each column."""

FITTED_WIDTH = 1000
"""Neurons of the head that judges whether they are enough."""

WORTH_REFINING = 1.1
"""A deeper network is refined if its loss is within this factor of the lowest so far."""

LOG_LOSS_ROWS = 1000
"""With fewer scored rows classes are compared by log-loss. The squared error of a 0/1 target also counts how near an
output comes to 1 where the class is beyond doubt; many rows drown that, few do not."""

HEAD_RIDGE = 1e-6
"""encoder_ridge="auto" for the head's neurons on autoencoder features where nothing is searched."""

HEAD_RIDGE_ON_INPUT = 1.0
"""The same on the input itself (depth 0)."""

NEURON_COLUMNS = ("neurons", "encoder_ridge", "activation", "direct")
"""What of a Plan says nothing where the head has no hidden neurons."""

ENCODER_RIDGES = (math.inf, 10.0, 3.0, 1.0, 0.3, 0.1, 1e-2, 1e-4)
INPUT_RIDGES = (math.inf, 1.0)
FEATURE_RIDGES = (1.0, 0.1)
"""The first encoder ridges tried; from the best of them the search walks along ENCODER_RIDGES."""

ACTIVATIONS_TRIED = ("relu", "relu2", "sigmoid")

BRANCH_ACTIVATIONS = ("tanh", "relu", "sin", "sigmoid")
"""Of stacks side by side, in this order, whatever the first has."""

MOST_BRANCHES = 4


@dataclass
class Result:
    """A fitted network and why it is what it is."""

    network: Network
    head: LinearHead | EstimatorHead
    table: list[dict[str, Any]] = field(default_factory=list)


def fit_network(params: Any, rows: Rows, y: np.ndarray | None, fit_params: dict) -> Result:
    """Choose a network for the rows, and fit it.

    Parameters
    ----------
    params : estimator
        Whose parameters (those of `PILAEClassifier`) say what to build and what to leave to the search.
    y, fit_params
        Targets and arguments for a head that is a scikit-learn estimator.
    """
    seed = seed_of(params.random_state)
    fixed_width = is_integer(params.head_width)
    wanted = int(params.head_width) if fixed_width else structure.HEAD_WIDTH_LIMIT
    capacity = max(wanted + 1, structure.width_bound(params.width, rows.d))  # pairs need one anchor more
    searching = params.depth == "auto" and params.growth == "loo" and structure.listed_widths(params.width) is None
    found = survey(
        rows,
        seed,
        params.anchors,
        capacity,
        scored_rows(wanted) if fixed_width else SCORED_ROWS,
        max(FITTED_ROWS, 10 * rows.d) if params.fit_rows == "auto" else params.fit_rows,
        _rows_of_last_round if searching else None,
        searching or not fixed_width or params.growth != "loo",
        # asinh is not linear: the Gram of the raw columns says nothing about it
        params.input_scaling != "asinh" or params.head_width == "formula" or rows.dual,
        params.input_scaling,
    )
    if not rows.n_classes:
        check_target_size(to_numpy(found.targets.sizes()), rows.dtype)
    available = int(found.anchors.shape[0]) - (params.head_anchors == "pairs")
    if params.head == "shln" and fixed_width and wanted > available:
        raise too_few_rows(wanted, available, "head_width")
    if searching:
        plan, near, table = _Search(params, rows, found, seed).run()
        rows.progress.end_of_stages()
    else:
        plan, near, table = _fixed_plan(params, found), None, []
    if params.fit_rows == "auto" and found.fitted is not None and not _half_is_enough(params, found.fitted, seed, plan):
        found = replace(found, fitted=None)
    builder = _Builder(params, rows, found, seed, products=_products(params, rows, searching))
    grower = builder.grow(plan)
    if not searching and _head_encoder_ridge(params) == "auto":
        seen = grower.depth == 0 or plan.skip  # the input itself is among what the head sees
        plan = plan._replace(encoder_ridge=HEAD_RIDGE_ON_INPUT if seen else HEAD_RIDGE)
    head = builder.head(grower, plan, y, fit_params, near)
    rows.passes = grower.passes
    return Result(builder.network(grower, plan), head, table)


def _half_is_enough(params: Any, rows: Rows, seed: int, plan: Plan) -> bool:
    """Whether layers fitted on half of a sample give the leave-one-out error of layers fitted on all of it, to within
    its standard error: then more rows than the sample would change less still."""
    if plan.depth == 0:
        return True
    width = min(FITTED_WIDTH, rows.n // 5)
    plan, capacity = plan._replace(head="shln"), max(width + 1, structure.width_bound(params.width, rows.d))
    errors = []
    for count in (rows.n // 2, None):
        found = survey(rows, seed, params.anchors, capacity, LAST_ROUND.scored, count)
        builder = _Builder(params, rows, found, seed, hold=True)
        scores = builder.linear(builder.grow(plan), plan, width, params.ridge).output.loo
        errors.append(scores.row_errors(builder.scale))
    change = float(np.average(errors[0] - errors[1], weights=scores.chooser))
    return change < scores.standard_error(errors[1])


def _head_encoder_ridge(params: Any) -> float | str:
    """Of the head's neurons: its own, or the one given for all encoders."""
    return params.encoder_ridge if params.head_encoder_ridge == "auto" else params.head_encoder_ridge


class Products(NamedTuple):
    """Dtypes of the products of Grams: of layers below others, of the features the head sees.

    The input's is always made in float64: squares of raw numbers may not fit into float32.
    """

    layers: str = "float64"
    features: str = "float64"


def _products(params: Any, rows: Rows, searching: bool) -> Products:
    """float32 for float32 rows where every encoder that reads the Gram has a ridge, and nothing depends on a rank."""
    exact = params.encoder != "rows" or structure.needs_rank(params.width) or params.growth != "loo"
    if rows.dtype != "float32" or exact:
        return Products()
    head = _head_encoder_ridge(params)
    if params.head != "shln":
        head = 0.0
    elif head == "auto":
        head = ENCODER_RIDGES[-1] if searching else HEAD_RIDGE
    return Products(
        *("float32" if ridge >= FLOAT32_RIDGE else "float64" for ridge in (_layer_ridge(params), float(head)))
    )


def _layer_ridge(params: Any) -> float:
    return LAYER_RIDGE if params.encoder_ridge == "auto" else float(params.encoder_ridge)


def _fixed_plan(params: Any, found: Survey) -> Plan:
    """What is built where nothing is searched: the parameters, and for each "auto" its rule."""
    listed = structure.listed_widths(params.width)
    depth = len(listed) if listed else params.depth
    if depth == "auto":
        depth = -1  # growth="rank" finds it
    ridge = HEAD_RIDGE if _head_encoder_ridge(params) == "auto" else _head_encoder_ridge(params)
    return Plan(
        input_scaling=structure.scaling_rule(params.input_scaling, found.moments.variance_a()),
        depth=depth,
        head=params.head if isinstance(params.head, str) else "estimator",
        encoder_ridge=float(ridge),
        neurons="rows" if params.head_anchors == "auto" else params.head_anchors,
        activation="relu" if params.head_activation == "auto" else params.head_activation,
        direct=False if params.direct_links == "auto" else bool(params.direct_links),
        skip=False if params.skip == "auto" else bool(params.skip),
        branches=1 if params.branches == "auto" else int(params.branches),
    )


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


class _Builder:
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
            _layer_ridge(params),
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


class _Trial:
    """Rows to compare candidates on, a width for them, and the layers grown so far."""

    def __init__(self, params: Any, rows: Rows, seed: int, size: Round, least: int, inner: int | None = None) -> None:
        capacity = max(size.width + 1, structure.width_bound(params.width, rows.d))
        self.found = found = survey(
            rows,
            seed,
            params.anchors,
            capacity,
            size.scored,
            search_rows=None if inner is None else lambda distinct: inner,
        )
        self.builder = _Builder(params, rows, found, seed, hold=True)
        width = min(max(least, found.distinct // 5), size.width)
        self.width = max(1, min(width, found.distinct // 3, int(found.anchors.shape[0]) - 1))
        self.mean = to_numpy(found.targets.mean_a)
        self.spread = float(np.sum(_target_variance(found) / self.builder.scale**2))
        """The squared error of always saying the mean."""
        self._growers: dict[str, Grower] = {}

    def grower(self, scaling: str, depth: int = 0) -> Grower:
        """Layers on this scaling of the input, at least `depth` of them."""
        if scaling not in self._growers:
            self._growers[scaling] = self.builder.grower(scaling)
        while self._growers[scaling].depth < depth:
            self._growers[scaling].step()
        return self._growers[scaling]


class _Search:
    """Compares candidates on a sample of the rows (all of them when they are few), in two rounds."""

    def __init__(self, params: Any, rows: Rows, found: Survey, seed: int) -> None:
        self.params = params
        self.free = _head_encoder_ridge(params) == "auto"
        rows = rows if found.searched is None else found.searched
        inner = min(max(4 * rows.d, 2000), FIRST_ROUND.rows)
        self.last = _Trial(params, rows, seed, _size_of_last_round(found.distinct), 400, inner)
        first = self.last.found.searched
        self.trial = _Trial(params, rows if first is None else first, seed, FIRST_ROUND, 200)
        self.table: list[dict[str, Any]] = []
        self.best: tuple[Plan, np.ndarray] | None = None

    def run(self) -> tuple[Plan, float | None, list[dict[str, Any]]]:
        self._first_round()
        if self.last.width > WIDER * self.trial.width:
            self._last_round()
        chosen = self._winner()
        last = self.table[-1]["round"]
        for row in self.table:
            row["chosen"] = row.pop("plan") == chosen and row["round"] == last
        near = next((row["ridge"] for row in self.table if row["chosen"]), None)
        return chosen, near, self.table

    def _first_round(self) -> None:
        given = self.params.input_scaling
        # asinh needs the d x d Gram of its own columns: not for data with more columns than rows
        few = self.trial.found.distinct < self.trial.builder.rows.d
        kinds: tuple[str, ...] = ("none", "standard") if few else ("none", "standard", "asinh")
        if self.params.head != "shln":  # judged by plain ridge, to which raw and standardised columns are the same
            kinds = (structure.scaling_rule("auto", self.last.found.moments.variance_a()), *kinds[2:])
        kinds = kinds if given == "auto" else (given,)
        growers = {scaling: self.trial.grower(scaling) for scaling in kinds}
        ridges = self._encoder_ridges(INPUT_RIDGES)
        for kind in kinds[:1] if self.params.head == "shln" else kinds:
            self._plain(growers[kind])
        for grower in growers.values():
            self._neurons(grower, ridges[:1], walk=False)
        if self._hidden_rows(0):
            grower = growers[self._best_hidden(0).input_scaling]
            if grower.scaling_kind == "asinh" and grower is not growers[kinds[0]]:
                self._plain(grower)  # standardised columns give what raw ones give: the output layer does that itself
            self._activations(grower)
            self._neurons(grower, ridges, walk=self.free)
            self._activations(grower)
            self._refine(grower)
        # deeper, one layer at a time, with the scaling that was best
        grower = growers[self._winner().input_scaling]
        while grower.depth < self.params.max_depth:
            before = self._winner()
            grower.step()
            self._plain(grower)
            ridges = self._encoder_ridges(FEATURE_RIDGES)
            self._neurons(grower, ridges, walk=self.free)
            self._refine(grower)
            if self._winner() == before:
                break

    def _last_round(self) -> None:
        """The best few again, the simpler ones first; wider layers on more rows can do with smaller encoder ridges, so
        these are followed down from the two best."""
        best = sorted(self._sound(), key=_loss)[:FINALISTS]
        before, self.trial, self.best = self.best, self.last, None
        growers: dict[tuple[str, int], Grower] = {}
        losses: dict[Plan, float] = {}

        def loss_of(plan: Plan, near: float) -> float:
            key = plan.input_scaling, plan.depth
            if key not in growers:
                growers[key] = copy.copy(self.trial.grower(*key))
            return self._try(growers[key], plan, near=near)

        for row in sorted(best, key=self.table.index):
            losses[row["plan"]] = loss_of(row["plan"], row["ridge"])
        if self.free:
            for plan in sorted(losses, key=losses.__getitem__)[:2]:
                loss, near = losses[plan], next(row["ridge"] for row in best if row["plan"] == plan)
                while plan.head == "shln" and plan.encoder_ridge in ENCODER_RIDGES[:-1]:
                    plan = plan._replace(encoder_ridge=ENCODER_RIDGES[ENCODER_RIDGES.index(plan.encoder_ridge) + 1])
                    lower = loss_of(plan, near)
                    if lower >= loss:
                        break
                    loss = lower
        self.best = self.best or before

    def _options(self, name: str, values: tuple) -> tuple:
        """The values to try: all of them, or the one the user gave."""
        given = getattr(self.params, name)
        return values if given == "auto" else (given,)

    def _encoder_ridges(self, values: tuple[float, ...]) -> tuple[float, ...]:
        return values if self.free else (float(_head_encoder_ridge(self.params)),)

    @property
    def _width(self) -> int:
        """Neurons of a candidate: those of the round, or as many as were asked for where that is fewer."""
        given = self.params.head_width
        return min(self.trial.width, int(given)) if is_integer(given) else self.trial.width

    def _plain(self, grower: Grower) -> None:
        """No hidden neurons. Heads other than "shln" are judged by this alone; a given head_width wants neurons."""
        if self.params.head != "shln" or self.params.head_width == "auto":
            for skip in self._options("skip", (False, True)) if grower.depth else (False,):
                count = self._options("branches", (1,))[0] if grower.depth else 1
                self._try(grower, Plan(grower.scaling_kind, grower.depth, "ridge", skip=skip, branches=count))

    def _neurons(self, grower: Grower, ridges: tuple, *, walk: bool) -> None:
        """Hidden neurons with these encoder ridges, then with their neighbours as long as that helps."""
        if self.params.head != "shln":
            return
        plan = Plan(
            grower.scaling_kind,
            grower.depth,
            "shln",
            self._options("head_anchors", ("rows",))[0],
            activation=self._options("head_activation", ACTIVATIONS_TRIED)[0],
            direct=self._options("direct_links", (False,))[0],
            skip=grower.depth > 0 and self._options("skip", (False,))[0],
            branches=self._options("branches", (1,))[0] if grower.depth else 1,
        )
        if self._hidden_rows(max(grower.depth - 1, 0)):
            before = self._best_hidden(max(grower.depth - 1, 0))
            plan = plan._replace(activation=before.activation, neurons=before.neurons)

        def loss_of(ridge: float) -> float:
            return self._try(grower, plan._replace(encoder_ridge=float(ridge)))

        best = min(ridges, key=loss_of)
        while walk and (grower.depth == 0 or self._worth_refining(grower.depth)):
            place = ENCODER_RIDGES.index(best)
            around = ENCODER_RIDGES[max(place - 1, 0) : place + 2]
            if min(around, key=loss_of) == best:
                break
            best = min(around, key=loss_of)

    def _activations(self, grower: Grower) -> None:
        """Other activations of the best hidden layer on the input."""
        for activation in self._options("head_activation", ACTIVATIONS_TRIED):
            best = self._best_hidden(0)
            if activation == "sigmoid" and best.activation == "relu2":
                continue  # it tames what relu2 stretches, and that helped
            self._try(grower, best._replace(activation=activation))

    def _refine(self, grower: Grower) -> None:
        """From the best hidden layer of this depth: pairs of anchors, direct links."""
        depth = grower.depth
        if not self._worth_refining(depth):
            return
        if depth == 0:  # deeper layers inherit that
            for kind in self._options("head_anchors", ("rows", "pairs")):
                self._try(grower, self._best_hidden(0)._replace(neurons=kind))
        if depth > 0:
            for skip in self._options("skip", (False, True)):
                self._try(grower, self._best_hidden(depth)._replace(skip=skip))
            for count in self._options("branches", (1, 2)):
                self._try(grower, self._best_hidden(depth)._replace(branches=count))
        wide = grower.features_width > 3 * self.trial.width  # so many links are no hidden layer's work
        for direct in self._options("direct_links", (False,) if wide else (False, True)):
            self._try(grower, self._best_hidden(depth)._replace(direct=direct))

    def _worth_refining(self, depth: int) -> bool:
        """Whether a hidden layer at this depth comes near the best so far."""
        hidden = [row["loss"] for row in self._hidden_rows(depth)]
        return bool(hidden) and min(hidden) <= WORTH_REFINING * min(map(_loss, self._sound()))

    def _hidden_rows(self, depth: int) -> list[dict[str, Any]]:
        return [row for row in self._sound() if row["plan"].head == "shln" and row["plan"].depth == depth]

    def _sound(self) -> list[dict[str, Any]]:
        """The candidates that may be chosen."""
        return [row for row in self.table if not row["brittle"]]

    def _best_hidden(self, depth: int) -> Plan:
        return min(self._hidden_rows(depth), key=_loss)["plan"]

    def _try(self, grower: Grower, plan: Plan, near: float | None = None) -> float:
        """Score one candidate, note it, keep it if it is the best so far. Its loss; infinite where it is no choice."""
        number = 2 if self.trial is self.last else 1
        for row in self.table:
            if row["plan"] == plan and row["round"] == number:
                return math.inf if row["brittle"] else row["loss"]
        start = time.perf_counter()
        builder = self.trial.builder
        builder.rows.progress.stage(f"candidate {len(self.table) + 1}: {_in_words(plan)}")
        if plan.head == "shln" and self._memorises(grower, plan):
            return math.inf
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                output = builder.linear(grower, plan, self._width, self.params.ridge, near=near).output
        except np.linalg.LinAlgError:  # numbers beyond the dtype's range: another scaling may do
            return math.inf
        scores, scale = output.loo, builder.scale
        error = scores.squared_error(scale)
        if not math.isfinite(error):
            return math.inf
        losses = self._losses(scores)
        loss = float(np.average(losses, weights=scores.chooser))
        on_anchors, of_mean = _error_on_anchors(scores, scale, self.trial.mean)
        brittle = self.free and plan.head == "shln" and on_anchors > max(of_mean, self.trial.spread)
        self.table.append(
            {
                "plan": plan,
                "round": number,
                **(plan._asdict() if plan.head == "shln" else plan._asdict() | dict.fromkeys(NEURON_COLUMNS)),
                "rows": self.trial.builder.rows.n,
                "width": int(output.coef.shape[0]),
                "loss": loss,
                "error": error,
                "error_on_anchors": on_anchors,
                "standard_error": scores.standard_error(losses),
                "ridge": output.ridge,
                "ridge_guo2003": output.guo2003,
                "brittle": brittle,
                "seconds": time.perf_counter() - start,
            }
        )
        if brittle:
            return math.inf
        if self.best is None or scores.lower(losses, self.best[1]):
            self.best = plan, losses
        return loss

    def _losses(self, scores: Scored) -> np.ndarray:
        """What candidates are compared by, of each scored row."""
        builder = self.trial.builder
        if builder.rows.n_classes and len(scores.weight) < LOG_LOSS_ROWS:
            return log_losses(scores)
        return scores.row_errors(builder.scale)

    def _memorises(self, grower: Grower, plan: Plan) -> bool:
        """Whether the encoder has more than n/3 degrees of freedom: then every anchor fires on itself alone."""
        if not self.free:
            return False
        gram = self.trial.builder.input(grower, plan).gram
        return gram.degrees_of_freedom(plan.encoder_ridge) > self.trial.found.distinct / 3

    def _winner(self) -> Plan:
        if self.best is None and self.table:  # nothing but brittle ones
            return min(self.table, key=_loss)["plan"]
        if self.best is None:
            raise ValueError(
                "No network could be fitted: the numbers in X or y are too large or too small for their dtype. Rescale "
                "them, or give float64."
            )
        return self.best[0]


def _beside(activation: str) -> list[str]:
    """Activations of the stacks beside one with this activation."""
    return [name for name in BRANCH_ACTIVATIONS if name != activation]


def _loss(row: dict[str, Any]) -> float:
    return row["loss"]


def _in_words(plan: Plan) -> str:
    scaling = "" if plan.input_scaling == "none" else f", {plan.input_scaling} input"
    if plan.head != "shln":
        return f"depth {plan.depth}{scaling}, no hidden neurons{', all layers' if plan.skip else ''}"
    links = (", direct links" if plan.direct else "") + (", all layers" if plan.skip else "")
    links += f", {plan.branches} stacks" if plan.branches > 1 else ""
    return f"depth {plan.depth}{scaling}, {plan.activation} of {plan.neurons}, ridge {plan.encoder_ridge:g}{links}"


def _then(*steps: Callable[[Array], Array] | None) -> Callable[[Array], Array]:
    """One step after another; None is no step."""

    def run(X: Array) -> Array:
        for step in steps:
            X = X if step is None else step(X)
        return X

    return run


def _error_on_anchors(scores: Scored, scale: np.ndarray, mean: np.ndarray) -> tuple[float, float]:
    """Mean squared error on scored rows that are neurons, and that of always saying the mean of the targets.

    Anchors take classes in turn, so they are not a sample of the rows: rare classes, which are far from the mean, have
    more than their share.
    """
    neurons = (scores.weight > 0) & (scores.chooser == 0)
    if not neurons.any():
        return math.nan, math.nan
    of_mean = np.sum(((scores.targets - mean) / scale) ** 2, axis=1)
    return float(np.mean(scores.row_errors(scale)[neurons])), float(np.mean(of_mean[neurons]))


def _target_variance(found: Survey) -> np.ndarray:
    return to_numpy(found.targets.variance_a())


def _target_scale(rows: Rows, found: Survey) -> np.ndarray:
    """What one unit of error is, for each output: a standard deviation for targets or labels, 1 for classes."""
    if rows.n_classes:
        return np.ones(rows.n_classes)
    spread = np.sqrt(_target_variance(found))
    return np.where(spread > 0, spread, 1.0)
