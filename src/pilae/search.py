"""The choice of a network by leave-one-out: a fixed, small set of candidates on a sample of rows, then one full fit.

Candidates are compared by the squared leave-one-out error of their output layer on rows that are not neurons
themselves; the lowest wins, and a tie goes to the one met first, which is the simpler one. No candidate's features
see the targets.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _check, structure
from .anchors import row_keys
from .blocks import Rows
from .head import EstimatorHead, Hidden, LinearHead, fit_estimator_head, fit_hidden, fit_output
from .layer import LayerSpec
from .linalg import Gram, PrimalGram
from .loo import Scored
from .moments import Moments
from .network import LAYER_RIDGE, Grower, Network, Survey, input_gram, survey
from .scaling import Scaling
from .structure import Plan

SCORED_ROWS = 3000
"""Distinct rows scored by leave-one-out (all of them when there are fewer)."""

SEARCH_ROWS = 6000
"""Distinct rows the candidates are fitted on."""

TRIAL_SCORED = 1500
"""Distinct rows the candidates are scored on."""

TRIAL_WIDTH = 600
"""Most hidden neurons of a candidate. They have one for five rows, at least 400 where a third of the rows allows it:
much narrower ones than the network will be would favour depth and plain columns."""

HEAD_RIDGE = 1e-6
"""encoder_ridge="auto" for the head's neurons on autoencoder features where nothing is searched."""

HEAD_RIDGE_ON_INPUT = 1.0
"""The same on the input itself (depth 0)."""

INPUT_RIDGES = (math.inf, 1e-2)
MORE_INPUT_RIDGES = (1.0, 1e-4)
FEATURE_RIDGES = (1e-2, 1e-4, 1e-6)
ACTIVATIONS_TRIED = ("relu", "relu2", "sigmoid")


@dataclass
class Result:
    """A fitted network and why it is what it is."""

    network: Network
    head: LinearHead | EstimatorHead
    table: list[dict[str, Any]] = field(default_factory=list)


def fit_network(params: Any, rows: Rows, y: np.ndarray, fit_params: dict) -> Result:
    """Choose a network for the rows, and fit it.

    Parameters
    ----------
    params : estimator
        Whose parameters (those of `PILAEClassifier`) say what to build and what to leave to the search.
    y, fit_params
        Targets and arguments for a head that is a scikit-learn estimator.
    """
    seed = _check.seed_of(params.random_state)
    fixed_width = _check.is_integer(params.head_width)
    wanted = int(params.head_width) if fixed_width else structure.HEAD_WIDTH_LIMIT + 1
    capacity = max(wanted, TRIAL_WIDTH + 1, structure.width_bound(params.width, rows.d))
    searching = params.depth == "auto" and params.growth == "loo" and structure.listed_widths(params.width) is None
    found = survey(
        rows, seed, params.anchors, capacity, SCORED_ROWS, params.fit_rows, SEARCH_ROWS if searching else None
    )
    if params.head == "shln" and fixed_width and wanted > len(found.anchors):
        raise _check.too_few_rows(wanted, len(found.anchors), "head_width")
    if searching:
        plan, table = _Search(params, rows, found, seed).run()
    else:
        plan, table = _fixed_plan(params, found), []
    builder = _Builder(params, rows, found, seed)
    grower = builder.grow(plan)
    if not searching and params.encoder_ridge == "auto":
        plan = plan._replace(encoder_ridge=HEAD_RIDGE if grower.depth else HEAD_RIDGE_ON_INPUT)
    head = builder.head(grower, plan, y, fit_params)
    rows.passes = grower.passes
    return Result(grower.network, head, table)


def _fixed_plan(params: Any, found: Survey) -> Plan:
    """What is built where nothing is searched: the parameters, and for each "auto" its rule."""
    listed = structure.listed_widths(params.width)
    depth = len(listed) if listed else params.depth
    if depth == "auto":
        depth = -1  # growth="rank" finds it
    ridge = HEAD_RIDGE if params.encoder_ridge == "auto" else params.encoder_ridge
    return Plan(
        input_scaling=structure.scaling_rule(params.input_scaling, found.moments.variance_a()),
        depth=depth,
        head=params.head if isinstance(params.head, str) else "estimator",
        encoder_ridge=float(ridge),
        activation="relu" if params.head_activation == "auto" else params.head_activation,
    )


class _Builder:
    """Builds what a plan says, on some rows."""

    def __init__(self, params: Any, rows: Rows, found: Survey, seed: int) -> None:
        self.params, self.rows, self.found, self.seed = params, rows, found, seed
        self.scale = _target_scale(rows)
        self._inputs: dict[str, tuple[Scaling | None, Gram]] = {}
        self._keys: tuple[np.ndarray, np.ndarray] | None = None

    def grower(self, scaling: str) -> Grower:
        params = self.params
        ridge = LAYER_RIDGE if params.encoder_ridge == "auto" else float(params.encoder_ridge)
        spec = LayerSpec(params.encoder, ridge, params.activation, params.gain, params.decoder_ridge, False)
        return Grower(self.rows, self.found, spec, params.width, scaling)

    def grow(self, plan: Plan) -> Grower:
        """The layers; depth -1 grows by the paper's rank rule."""
        grower = self.grower(plan.input_scaling)
        if plan.depth < 0:
            while grower.depth < self.params.max_depth and not grower.reached_full_rank(self.params.growth):
                grower.step()
        for _ in range(plan.depth):
            grower.step()
        return grower

    def head(self, grower: Grower, plan: Plan, y: np.ndarray, fit_params: dict) -> LinearHead | EstimatorHead:
        """The head that stays."""
        params = self.params
        if not isinstance(params.head, str) or params.head == "softmax":
            moments = self._feature_moments(grower) if params.head == "softmax" else None
            return fit_estimator_head(self.rows, grower.network, params.head, y, fit_params, moments)
        nested = params.head_width == "auto" and plan.head == "shln"
        if params.head_width == "formula":
            rank, n_rows = input_gram(self.found, self.rows, None).rank, self.found.distinct
            width = min(structure.formula_width(rank, n_rows), self._available(plan))
        else:
            width = self._widest(plan) if params.head_width == "auto" else int(params.head_width)
        if width > self._available(plan):  # as many neurons as rows: pairs need one row more
            plan = plan._replace(neurons="rows")
        return self.linear(grower, plan, width, params.ridge, nested=nested, keep=params.keep_statistics)

    def _available(self, plan: Plan) -> int:
        """Most neurons the anchors are enough for."""
        return max(1, len(self.found.anchors) - (plan.neurons == "pairs"))

    def _widest(self, plan: Plan) -> int:
        return max(1, min(structure.widest_head(self.found.distinct), self._available(plan)))

    def linear(
        self, grower: Grower, plan: Plan, width: int, ridge: float | str, *, nested: bool = False, keep: bool = False
    ) -> LinearHead:
        """A head of hidden neurons, or none, on the newest features."""
        hidden = self._hidden(grower, plan, width) if plan.head == "shln" else None
        columns = grower.features_width if hidden is None else width + hidden.links
        assert self.found.scored is not None
        return fit_output(
            self.rows,
            self.found.scored,
            grower.network,
            hidden,
            columns,
            ridge,
            neurons=self._are_neurons(grower, width),
            scale=self.scale,
            nested=nested,
            keep=keep,
            label=f"output layer, {columns} columns",
        )

    def _are_neurons(self, grower: Grower, width: int) -> np.ndarray:
        """Which scored rows are among the anchors, by value: equal rows with other targets count too."""
        assert self.found.scored is not None
        if self._keys is None:
            self._keys = row_keys(self.found.scored.whole().X, self.seed), row_keys(grower.anchors, self.seed)
        scored, anchors = self._keys
        return np.isin(scored, anchors[: width + 1])

    def _hidden(self, grower: Grower, plan: Plan, width: int) -> Hidden:
        """Neurons on the newest features. Those of layers are standardised; raw input is only centred."""
        rows, network = self.rows, grower.network
        moments = grower.moments
        if moments is not None:
            scaling: Scaling | None = Scaling.standard(moments.mean_a, moments.variance_a())
            gram: Gram = PrimalGram(scaling.gram(moments.gram(centred=True)), moments.weight)  # type: ignore[union-attr]
        else:
            scaling, gram = self._at_input(grower)
        anchors = network(grower.anchors[: min(width + 1, len(self.found.anchors)), :])
        if scaling is not None:
            anchors = scaling(anchors)
        return fit_hidden(rows, scaling, gram, rows.space.asarray(anchors, "float64"), width, plan, self.seed)

    def _at_input(self, grower: Grower) -> tuple[Scaling | None, Gram]:
        """The scaling of the input for the head and the spectrum of what it gives; found once for each kind."""
        kind = grower.scaling_kind
        if kind not in self._inputs:
            scaling = None if kind == "standard" else Scaling.centring(self.found.moments.mean_a)
            self._inputs[kind] = scaling, input_gram(self.found, self.rows, grower.network.scaling or scaling)
        return self._inputs[kind]

    def _feature_moments(self, grower: Grower) -> Moments:
        """Moments of the newest features with their whole Gram."""
        if grower.moments is not None:
            return grower.moments
        moments = Moments(self.rows.space)
        for block in self.rows.blocks("features"):
            moments.add(grower.network(block.X), None, block.w)
        return moments


class _Search:
    """Compares candidates on a sample of the rows (all of them when they are few)."""

    def __init__(self, params: Any, rows: Rows, found: Survey, seed: int) -> None:
        self.params = params
        rows = rows if found.searched is None else found.searched
        capacity = max(TRIAL_WIDTH + 1, structure.width_bound(params.width, rows.d))
        found = survey(rows, seed, params.anchors, capacity, TRIAL_SCORED)
        self.builder = _Builder(params, rows, found, seed)
        self.found = found
        width = min(max(400, found.distinct // 5), TRIAL_WIDTH)
        self.width = max(1, min(width, found.distinct // 3, len(found.anchors) - 1))
        self.table: list[dict[str, Any]] = []
        self.best: tuple[Plan, Scored] | None = None

    def run(self) -> tuple[Plan, list[dict[str, Any]]]:
        given = self.params.input_scaling
        # asinh needs the d x d Gram of its own columns: not for data with more columns than rows
        few = self.found.distinct < self.builder.rows.d
        kinds = ("none", "standard") if few else ("none", "standard", "asinh")
        scalings = kinds if given == "auto" else (given,)
        growers = {scaling: self.builder.grower(scaling) for scaling in scalings}
        for grower in growers.values():
            self._at_depth(grower, self._options("encoder_ridge", INPUT_RIDGES))
        if self._hidden_rows(0):
            grower = growers[self._best_hidden(0).input_scaling]
            self._at_depth(grower, self._options("encoder_ridge", MORE_INPUT_RIDGES))
            self._refine(grower)
        # deeper, one layer at a time, with the scaling that was best
        best, _ = self._winner()
        grower = growers[best.input_scaling]
        while grower.depth < self.params.max_depth:
            before = self._winner()
            grower.step()
            self._at_depth(grower, self._options("encoder_ridge", FEATURE_RIDGES))
            self._refine(grower)
            if self._winner() is before:
                break
        chosen = self._winner()[0]
        for row in self.table:
            row["chosen"] = row.pop("plan") == chosen
        return chosen, self.table

    def _options(self, name: str, values: tuple) -> tuple:
        """The values to try: all of them, or the one the user gave."""
        given = getattr(self.params, name)
        return values if given == "auto" else (given,)

    def _at_depth(self, grower: Grower, ridges: tuple) -> None:
        """Plain ridge on the newest features, and hidden neurons with every encoder ridge.

        Heads other than "shln" are judged by plain ridge alone; a given head_width means that neurons are wanted.
        """
        params, scaling = self.params, grower.scaling_kind
        plain = params.head != "shln" or params.head_width == "auto"
        same_as_raw = scaling == "standard" and params.input_scaling == "auto" and not grower.depth
        if plain and not same_as_raw:  # the output layer standardises by itself
            self._try(grower, Plan(scaling, grower.depth, "ridge"))
        if params.head != "shln":
            return
        activation = self._options("head_activation", ACTIVATIONS_TRIED)[0]
        for ridge in ridges:
            self._try(grower, Plan(scaling, grower.depth, "shln", "rows", float(ridge), activation))

    def _refine(self, grower: Grower) -> None:
        """From the best hidden layer of this depth: other activations, pairs of anchors, direct links."""
        depth = grower.depth
        if not self._hidden_rows(depth):
            return
        for activation in self._options("head_activation", ACTIVATIONS_TRIED):
            self._try(grower, self._best_hidden(depth)._replace(activation=activation))
        self._try(grower, self._best_hidden(depth)._replace(neurons="pairs"))
        if grower.features_width <= 2 * self.width:  # more links than that are no hidden layer's work
            self._try(grower, self._best_hidden(depth)._replace(direct=True))

    def _hidden_rows(self, depth: int) -> list[dict[str, Any]]:
        return [row for row in self.table if row["plan"].head == "shln" and row["plan"].depth == depth]

    def _best_hidden(self, depth: int) -> Plan:
        return min(self._hidden_rows(depth), key=lambda row: row["error"])["plan"]

    def _try(self, grower: Grower, plan: Plan) -> None:
        """Score one candidate, note it, keep it if it is the best so far."""
        if any(row["plan"] == plan for row in self.table):
            return
        start = time.perf_counter()
        if plan.head == "shln" and self._memorises(grower, plan.encoder_ridge):
            return
        scale = self.builder.scale
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                scores = self.builder.linear(grower, plan, self.width, "auto").output.loo
        except np.linalg.LinAlgError:  # numbers beyond the dtype's range: another scaling may do
            return
        if not math.isfinite(scores.squared_error(scale)):
            return
        self.table.append(
            {
                "plan": plan,
                **plan._asdict(),
                "error": scores.squared_error(scale),
                "error_on_anchors": _error_on_anchors(scores, scale),
                "standard_error": scores.standard_error(scale),
                "seconds": time.perf_counter() - start,
            }
        )
        if self.best is None or scores.beats(self.best[1], scale):
            self.best = plan, scores

    def _memorises(self, grower: Grower, ridge: float) -> bool:
        """Whether the encoder has more than n/3 degrees of freedom: then every anchor fires on itself alone."""
        if self.params.encoder_ridge != "auto":
            return False
        gram = grower.gram if grower.moments is not None else self.builder._at_input(grower)[1]
        assert gram is not None
        return gram.degrees_of_freedom(ridge) > self.found.distinct / 3

    def _winner(self) -> tuple[Plan, Scored]:
        if self.best is None:
            raise ValueError(
                "No network could be fitted: the numbers in X or y are too large or too small for their dtype. Rescale "
                "them, or give float64."
            )
        return self.best


def _error_on_anchors(scores: Scored, scale: np.ndarray) -> float:
    neurons = (scores.weight > 0) & (scores.chooser == 0)
    return float(np.mean(scores.row_errors(scale)[neurons])) if neurons.any() else math.nan


def _target_scale(rows: Rows) -> np.ndarray:
    """What one unit of error is, for each output: a standard deviation for targets or labels, 1 for classes."""
    if rows.targets is None:
        return np.ones(rows.n_targets)
    mean = np.average(rows.targets, axis=0, weights=rows.weight)
    spread = np.sqrt(np.average((rows.targets - mean) ** 2, axis=0, weights=rows.weight))
    return np.where(spread > 0, spread, 1.0)
