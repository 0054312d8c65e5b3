"""The choice of a network by leave-one-out: a fixed, small set of candidates on a sample of rows.

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
from typing import Any

import numpy as np

from .._base.scalars import is_integer
from .._data.rows import Rows
from .._engine.loo import Scored
from .._network import structure
from .._network.calibration import log_losses
from .._network.growth import Grower
from .._network.structure import Plan
from .._network.survey import Survey
from .builder import head_encoder_ridge
from .rounds import FIRST_ROUND, Trial, size_of_last_round

FINALISTS = 4

WIDER = 1.4
"""The last round is held if it is wider than the first by this factor."""

WORTH_REFINING = 1.1
"""A deeper network is refined if its loss is within this factor of the lowest so far."""

LOG_LOSS_ROWS = 1000
"""With fewer scored rows classes are compared by log-loss. The squared error of a 0/1 target also counts how near an
output comes to 1 where the class is beyond doubt; many rows drown that, few do not."""

NEURON_COLUMNS = ("neurons", "encoder_ridge", "activation", "direct")
"""What of a Plan says nothing where the head has no hidden neurons."""

ENCODER_RIDGES = (math.inf, 10.0, 3.0, 1.0, 0.3, 0.1, 1e-2, 1e-4)

INPUT_RIDGES = (math.inf, 1.0)

FEATURE_RIDGES = (1.0, 0.1)
"""The first encoder ridges tried; from the best of them the search walks along ENCODER_RIDGES."""

ACTIVATIONS_TRIED = ("relu", "relu2", "sigmoid")


class Search:
    """Compares candidates on a sample of the rows (all of them when they are few), in two rounds."""

    def __init__(self, params: Any, rows: Rows, found: Survey, seed: int) -> None:
        self.params = params
        self.free = head_encoder_ridge(params) == "auto"
        rows = rows if found.searched is None else found.searched
        inner = min(max(4 * rows.d, 2000), FIRST_ROUND.rows)
        self.last = Trial(params, rows, seed, size_of_last_round(found.distinct), 400, inner)
        first = self.last.found.searched
        self.trial = Trial(params, rows if first is None else first, seed, FIRST_ROUND, 200)
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
        return values if self.free else (float(head_encoder_ridge(self.params)),)

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


def _loss(row: dict[str, Any]) -> float:
    return row["loss"]


def _in_words(plan: Plan) -> str:
    scaling = "" if plan.input_scaling == "none" else f", {plan.input_scaling} input"
    if plan.head != "shln":
        return f"depth {plan.depth}{scaling}, no hidden neurons{', all layers' if plan.skip else ''}"
    links = (", direct links" if plan.direct else "") + (", all layers" if plan.skip else "")
    links += f", {plan.branches} stacks" if plan.branches > 1 else ""
    return f"depth {plan.depth}{scaling}, {plan.activation} of {plan.neurons}, ridge {plan.encoder_ridge:g}{links}"


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
