"""The choice of a network by leave-one-out: a fixed, small set of candidates on a sample of rows.

Candidates are compared on rows that are not neurons themselves. No candidate's features see the targets. A candidate
that does worse than the mean on the rows that are neurons is brittle: next to its own row a neuron says something wild,
and new rows may come near.
"""

import copy
import math
from typing import Any, NamedTuple

import numpy as np

from .._arrays import to_numpy
from .._data.rows import Rows
from .._engine.scores import Scored
from .._network.growth import Grower
from .._network.structure import Plan, scaling_rule, widest_head
from .._network.survey import Survey, SurveySpec, survey_rows
from .builder import Builder
from .search import Judged, Search, loss_of
from .spec import Spec

FINALISTS = 4

WIDER = 1.4
"""The last round is held if it is wider than the first by this factor."""

WORTH_REFINING = 1.1
"""A deeper network is refined if its loss is within this factor of the lowest so far."""

NEURON_COLUMNS = ("neurons", "encoder_ridge", "activation", "direct")
"""What of a Plan says nothing where the head has no hidden neurons."""

ENCODER_RIDGES = (math.inf, 10.0, 3.0, 1.0, 0.3, 0.1, 1e-2, 1e-4)

INPUT_RIDGES = (math.inf, 1.0)

FEATURE_RIDGES = (1.0, 0.1)
"""The first encoder ridges tried; from the best of them the search walks along ENCODER_RIDGES."""

ACTIVATIONS_TRIED = ("relu", "relu2", "sigmoid")


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


def size_of_last_round(distinct: int) -> Round:
    """LAST_ROUND, or less where the head will be narrow: half its neurons, on eight rows for each."""
    width = min(LAST_ROUND.width, max(widest_head(distinct) // 2, FIRST_ROUND.width))
    return Round(min(LAST_ROUND.rows, max(8 * width, FIRST_ROUND.rows)), LAST_ROUND.scored, width)


class Trial(Builder):
    """Rows to compare candidates on, a width for them, and the layers grown so far."""

    def __init__(self, spec: Spec, rows: Rows, size: Round, least: int, inner: int | None = None) -> None:
        capacity = max(size.width + 1, spec.width.bound(rows.d))
        search_rows = None if inner is None else lambda distinct: inner
        survey_spec = SurveySpec(spec.seed, spec.anchors, capacity, size.scored, search_rows=search_rows)
        survey = survey_rows(rows, survey_spec)
        super().__init__(spec, rows, survey, hold=True)
        width = min(max(least, survey.distinct // 5), size.width)
        self.width = max(1, min(width, survey.distinct // 3, int(survey.anchors.shape[0]) - 1))
        self.mean = to_numpy(survey.targets.mean_a)
        self.spread = float(np.sum(to_numpy(survey.targets.variance_a()) / self.scale**2))
        """The squared error of always saying the mean."""
        self._grown: dict[tuple[str, int], Grower] = {}

    def grown(self, scaling: str, depth: int) -> Grower:
        """So many layers on this scaling of the input."""
        if (scaling, depth) not in self._grown:
            grower = copy.copy(self.grown(scaling, depth - 1)) if depth else self.grower(scaling)
            if depth:
                grower.step()
            self._grown[scaling, depth] = grower
        return self._grown[scaling, depth]


def options(choice: object, values: tuple) -> tuple:
    """The values to try: all of them, or the user's choice."""
    return values if choice is None else (choice,)


class NetworkSearch(Search[Plan]):
    """Compares networks on a sample of the rows (all of them when they are few), in two rounds."""

    def __init__(self, spec: Spec, rows: Rows, survey: Survey) -> None:
        super().__init__(rows.progress)
        self.spec, self.free = spec, spec.head.encoder_ridge is None
        inner = min(max(4 * rows.d, 2000), FIRST_ROUND.rows)
        self.last = Trial(spec, survey.searched, size_of_last_round(survey.distinct), 400, inner)
        self.trial = Trial(spec, self.last.survey.searched, FIRST_ROUND, 200)

    def run(self) -> tuple[Plan, float | None, list[dict[str, Any]]]:
        """(the best plan, its output ridge, the table)."""
        self._first_round()
        if self.last.width > WIDER * self.trial.width:
            self._last_round()
        chosen = self.winner()
        table = self.finished(chosen)
        return chosen, next((row["ridge"] for row in table if row["chosen"]), None), table

    def _first_round(self) -> None:
        kinds = self._scalings()
        hidden = self.spec.head.kind == "shln"
        ridges = options(self.spec.head.encoder_ridge, INPUT_RIDGES)
        for kind in kinds[:1] if hidden else kinds:
            self._plain(kind, 0)
        for kind in kinds if hidden else ():
            self._neurons(kind, 0, ridges[:1], walk=False)
        if self._hidden_rows(0):
            kind = self._best_hidden(0).input_scaling
            if kind == "asinh" and kind != kinds[0]:
                self._plain(kind, 0)  # standardised columns give what raw ones give: the output layer does that itself
            self._activations()
            self._neurons(kind, 0, ridges, walk=self.free)
            self._activations()
            self._refine(0)
        kind = self.winner().input_scaling
        for depth in range(1, self.spec.max_depth + 1):  # one layer at a time, with the scaling that was best
            before = self.winner()
            self._plain(kind, depth)
            if hidden:
                self._neurons(kind, depth, options(self.spec.head.encoder_ridge, FEATURE_RIDGES), walk=self.free)
            self._refine(depth)
            if self.winner() == before:
                break

    def _scalings(self) -> tuple[str, ...]:
        if self.spec.input_scaling != "auto":
            return (self.spec.input_scaling,)
        # asinh needs the d x d Gram of its own columns: not for data with more columns than rows
        few = self.trial.survey.distinct < self.trial.rows.d
        asinh: tuple[str, ...] = () if few else ("asinh",)
        if self.spec.head.kind == "shln":
            return ("none", "standard", *asinh)
        # judged by plain ridge, to which raw and standardised columns are the same
        return (scaling_rule("auto", self.last.survey.moments.variance_a()), *asinh)

    def _last_round(self) -> None:
        """The best few again, the simpler ones first; wider layers on more rows can do with smaller encoder ridges, so
        these are followed down from the two best."""
        best = sorted(self.sound(), key=loss_of)[:FINALISTS]
        before, self.trial, self.best, self.round = self.best, self.last, None, 2
        losses = {row["plan"]: self.loss(row["plan"], row["ridge"]) for row in sorted(best, key=self.table.index)}
        for plan in sorted(losses, key=losses.__getitem__)[:2] if self.free else ():
            loss, near = losses[plan], next(row["ridge"] for row in best if row["plan"] == plan)
            while plan.head == "shln" and plan.encoder_ridge in ENCODER_RIDGES[:-1]:
                plan = plan._replace(encoder_ridge=ENCODER_RIDGES[ENCODER_RIDGES.index(plan.encoder_ridge) + 1])
                lower = self.loss(plan, near)
                if lower >= loss:
                    break
                loss = lower
        self.best = self.best or before

    def _plain(self, scaling: str, depth: int) -> None:
        """No hidden neurons. Heads other than "shln" are judged by this alone; a given width wants neurons."""
        head = self.spec.head
        if head.kind != "shln" or (head.width is None and not head.formula):
            for skip in options(self.spec.skip, (False, True)) if depth else (False,):
                branches = (self.spec.branches or 1) if depth else 1
                self.loss(Plan(scaling, depth, "ridge", skip=skip, branches=branches))

    def _neurons(self, scaling: str, depth: int, ridges: tuple[float, ...], *, walk: bool) -> None:
        """Hidden neurons with these encoder ridges, then with their neighbours as long as that helps."""
        plan = self.spec.plan(scaling, depth, "shln")
        if self._hidden_rows(max(depth - 1, 0)):
            below = self._best_hidden(max(depth - 1, 0))
            plan = plan._replace(activation=below.activation, neurons=below.neurons)

        def loss(ridge: float) -> float:
            return self.loss(plan._replace(encoder_ridge=ridge))

        best = min(ridges, key=loss)
        while walk and (depth == 0 or self._worth_refining(depth)):
            k = ENCODER_RIDGES.index(best)
            before, best = best, min(ENCODER_RIDGES[max(k - 1, 0) : k + 2], key=loss)
            if best == before:
                break

    def _activations(self) -> None:
        """Other activations of the best hidden layer on the input."""
        for activation in options(self.spec.head.activation, ACTIVATIONS_TRIED):
            best = self._best_hidden(0)
            if activation == "sigmoid" and best.activation == "relu2":
                continue  # it tames what relu2 stretches, and that helped
            self.loss(best._replace(activation=activation))

    def _refine(self, depth: int) -> None:
        """From the best hidden layer of this depth: pairs of anchors, direct links."""
        if not self._worth_refining(depth):
            return
        if depth == 0:  # deeper layers inherit that
            self._vary(0, "neurons", options(self.spec.head.anchors, ("rows", "pairs")))
        else:
            self._vary(depth, "skip", options(self.spec.skip, (False, True)))
            self._vary(depth, "branches", options(self.spec.branches, (1, 2)))
        features = self.trial.grown(self._best_hidden(depth).input_scaling, depth).features_width
        wide = features > 3 * self.trial.width  # so many links are no hidden layer's work
        self._vary(depth, "direct", options(self.spec.head.direct, (False,) if wide else (False, True)))

    def _vary(self, depth: int, name: str, values: tuple) -> None:
        for value in values:
            self.loss(self._best_hidden(depth)._replace(**{name: value}))

    def _worth_refining(self, depth: int) -> bool:
        """Whether a hidden layer at this depth comes near the best so far."""
        hidden = [row["loss"] for row in self._hidden_rows(depth)]
        return bool(hidden) and min(hidden) <= WORTH_REFINING * min(map(loss_of, self.sound()))

    def _hidden_rows(self, depth: int) -> list[dict[str, Any]]:
        return [row for row in self.sound() if row["plan"].head == "shln" and row["plan"].depth == depth]

    def _best_hidden(self, depth: int) -> Plan:
        return min(self._hidden_rows(depth), key=loss_of)["plan"]

    def judge(self, plan: Plan, near: float | None) -> Judged | None:
        trial = self.trial
        grower = trial.grown(plan.input_scaling, plan.depth)
        width = min(trial.width, self.spec.head.width or trial.width)  # of the round, or what was asked for
        shln = plan.head == "shln"
        if shln and self.free:  # with more than n/3 degrees of freedom every anchor fires on itself alone
            freedom = trial.input(grower, plan).gram.degrees_of_freedom(plan.encoder_ridge)
            if freedom > trial.survey.distinct / 3:
                return None
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                head = trial.linear(grower, plan, width, near)
        except np.linalg.LinAlgError:  # numbers beyond the dtype's range: another scaling may do
            return None
        on_anchors, of_mean = _error_on_anchors(head.residuals(), trial.scale, trial.mean)
        about = plan._asdict() if shln else plan._asdict() | dict.fromkeys(NEURON_COLUMNS)
        about |= {"rows": trial.rows.n, "error_on_anchors": on_anchors}
        brittle = self.free and shln and on_anchors > max(of_mean, trial.spread)
        return Judged(head, trial.scale, bool(trial.rows.n_classes), about, brittle)

    def in_words(self, plan: Plan) -> str:
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
