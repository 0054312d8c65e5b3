"""Candidates on a sample of the rows: features kept from one to the next, metrics learnt on one half of it."""

import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._arrays import Array, diagonal, to_numpy
from .._data.groups import spread
from .._data.halves import FEW_ROWS, Halves
from .._data.keys import row_keys
from .._data.rows import Rows
from .._engine.scores import Scored
from .._network.gradients import learn
from .._network.growth import Grower, Scalings
from .._network.head import LinearHead
from .._network.metric import FULL_COLUMNS, NO_SHAPE, Shape, metric_of
from .._network.radial import unit_length
from .._network.structure import Plan
from .._network.survey import Survey, SurveySpec, survey_rows
from .builder import Builder
from .spec import Spec

NEURONS_SCORED = 100
"""Rows that are neurons and are scored, too: candidates that are wild there are not chosen."""


class Round(NamedTuple):
    """How many distinct rows candidates are fitted and scored on, and the most hidden neurons they get."""

    rows: int
    scored: int
    width: int


class Sampled(NamedTuple):
    """What candidates are compared on: rows, what was found about them, the half that shapes, scalings of all rows."""

    rows: Rows
    survey: Survey
    halves: Halves | None
    scalings: Scalings


class Trial(Builder):
    """Rows to compare candidates on, a width for them, and what was grown and learnt so far."""

    def __init__(self, spec: Spec, sampled: Sampled, size: Round) -> None:
        rows, survey, halves, scalings = sampled
        super().__init__(spec, rows, survey, hold=True, halves=halves, scalings=scalings)
        self.width = self._width(size)
        if halves is not None:
            self.survey = replace(self.survey, scored=self._scored(size.scored))
        self.mean = to_numpy(survey.targets.mean_a)
        self.spread = float(np.sum(to_numpy(survey.targets.variance_a()) / self.scale**2))
        """The squared error of always saying the mean."""
        self._grown: dict[tuple[str, int], Grower] = {}
        self.fitted: dict[Plan, LinearHead] = {}
        """The candidates so far."""
        self._outer: dict[Plan, Array] = {}
        self._shapes: dict[Plan, Shape] = {}
        self._shaping: tuple[np.ndarray, np.ndarray] | None = None
        """Rows of the half that shapes, and their keys."""

    def _width(self, size: Round) -> int:
        return max(1, min(size.width, self.survey.distinct // 3, self.shaping - 1))

    def widened(self, size: Round) -> "Trial":
        """The same rows with more neurons: scalings, layers and metrics are there already."""
        new = copy.copy(self)
        new.width, new.fitted, new._outer = self._width(size), {}, {}
        new._shapes = dict(self._shapes)
        return new

    def inherit(self, other: "Trial") -> None:
        """What another trial's narrower layers, or fewer rows, have learnt of metrics and lengths."""
        self._shapes = dict(other._shapes)

    def _scored(self, count: int) -> Rows:
        """Rows of the half that judges first, then some that are neurons."""
        scored, neurons = self.survey.scored, self.neurons(self.width)
        at = np.concatenate([np.flatnonzero(self.judges)[:count], np.flatnonzero(neurons)[:NEURONS_SCORED]])
        if scored.group is not None:
            at = np.flatnonzero(spread(np.isin(np.arange(scored.n), at), scored.group))
        del self.keys, self.judges  # those of the rows before
        return scored.subset(at)

    def grown(self, scaling: str, depth: int) -> Grower:
        """So many layers on this scaling of the input."""
        if (scaling, depth) not in self._grown:
            grower = copy.copy(self.grown(scaling, depth - 1)) if depth else self.grower(scaling)
            if depth:
                grower.step()
            self._grown[scaling, depth] = grower
        return self._grown[scaling, depth]

    def has_grown(self, plan: Plan) -> bool:
        """Whether its layers are there already."""
        return (plan.input_scaling, plan.depth) in self._grown

    def candidate(self, plan: Plan, near: float | None) -> LinearHead:
        """Its head, as wide as the round or as was asked for."""
        width = min(self.width, self.spec.head.width or self.width)
        head = self.linear(self.grown(plan.input_scaling, plan.depth), plan, width, near, self.shape(plan))
        self.fitted[plan] = head
        return head

    def judging(self, head: LinearHead) -> Scored:
        """Its results on the rows that choose: the same for all candidates where there are halves."""
        loo = head.residuals()
        if self.halves is None:
            return loo
        judges = loo.at(self.judges & (loo.weight > 0))
        return judges._replace(chooser=judges.weight)

    def shape(self, plan: Plan) -> Shape:
        """What labels and anchors say of its neurons: a metric, a unit of length."""
        if plan.head != "shln" or (plan.rounds == 0 and plan.neurons != "radial"):
            return NO_SHAPE
        if plan not in self._shapes:
            anchors = self.input(self.grown(plan.input_scaling, plan.depth), plan).anchors[: self.shaping, :]
            metric = None
            if plan.rounds:
                M = self._learnt(before(plan))
                metric = metric_of(diagonal(M) if plan.diagonal and M.ndim == 2 else M, plan.power)
            unit = None if plan.neurons != "radial" else unit_length(anchors, None if metric is None else metric.root)
            self._shapes[plan] = Shape(metric, unit)
        return self._shapes[plan]

    def _learnt(self, plan: Plan) -> Array:
        """M of this candidate, fitted to the half that shapes alone, at the ridge that the other half has chosen."""
        if plan not in self._outer:
            head = self.fitted.get(plan) or self.candidate(plan, None)
            assert head.hidden is not None
            assert self.halves is not None
            rows = self.input(self.grown(plan.input_scaling, plan.depth), plan).rows
            if self._shaping is None:
                X = self.rows.whole().X
                keys = row_keys(X, self.spec.seed)
                order = np.argsort(keys, kind="stable")  # the first of them are a sample, in whatever order they came
                at = order[self.halves.shapes(X, self.rows.group)[order]]
                self._shaping = at, keys[at]
            at, keys = self._shaping
            self._outer[plan] = learn(
                rows.subset(at), head.hidden, head.output.ridge, keys, full=rows.d <= FULL_COLUMNS
            )
        return self._outer[plan]


def before(plan: Plan) -> Plan:
    """The candidate whose fit teaches the metric of this one."""
    below = plan._replace(rounds=plan.rounds - 1)
    return below if below.rounds else below._replace(power=Plan().power, diagonal=Plan().diagonal, taught=Plan().taught)


def sampled(spec: Spec, whole: Sampled, size: Round) -> Sampled:
    """Rows for a round of candidates, and what a first pass finds of them."""
    rows, survey, halves, _ = whole
    if survey.distinct <= min(1.2 * size.rows, survey.scored.n):
        # what is known of these rows is known already; a stream's are all in the sample, each with its weight
        return whole if rows.in_memory else whole._replace(rows=survey.scored)
    if rows.group is not None:  # rows of all groups: those that are scored whole may be few
        sample = survey.searched.first(size.rows)
    else:
        sample = survey.searched if size.rows > survey.scored.n else survey.scored.first(size.rows)
    # of the scored rows one half chooses, and of the anchors one half shapes
    double = 1 if halves is None else 2
    capacity = max(double * (size.width + 1), spec.width.bound(rows.d))
    if halves is not None and halves.both_ways:
        capacity = max(capacity, FEW_ROWS)  # both halves will have their turn
    found = survey_rows(sample, SurveySpec(spec.seed, spec.anchors, capacity, double * size.scored))
    return whole._replace(rows=sample, survey=found)
