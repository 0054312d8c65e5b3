"""Networks as candidates: how one is judged, and what is known of those that were."""

import math
from typing import Any

import numpy as np

from .._engine.scores import Scored
from .._network.structure import Plan, widest_head
from .search import Judged, Merits, Search, loss_of, row_losses
from .spec import Spec
from .trial import Round, Sampled, Trial, sampled

FIRST_ROUND = Round(rows=2000, scored=600, width=160)
"""Every candidate, on at most so many rows. Neurons: at most a third of the rows."""

MIDDLE_ROUND = Round(rows=4000, scored=900, width=400)
"""The best few again."""

LAST_ROUND = Round(rows=15_000, scored=3000, width=2000)
"""The best of these, wider still: narrow layers favour depth and plain columns."""

FEW_COLUMNS = 100
"""Tables of more columns begin with the middle round."""

WIDER, MUCH_WIDER = 1.4, 2.0
"""A last round is held if it is wider than the one before by this factor; one between the first and the last, if the
last is wider than that by the second."""

HOPELESS = 1.0
"""A candidate that is worse than the best by so many standard errors on one half of few rows is not asked on the
other."""

GAIN, LITTLE_GAIN = 2.0, 1.2
"""A candidate comes into the next round if its loss is within this factor of the lowest: the first for those whose
neurons will be more."""

NEURON_COLUMNS = ("neurons", "encoder_ridge", "activation", "direct", "length", "rounds", "power", "diagonal", "taught")
"""What of a Plan says nothing where the head has no hidden neurons."""

Row = dict[str, Any]
"""Of the table of candidates."""


def size_of_last_round(distinct: int) -> Round:
    """LAST_ROUND, or less where the head will be narrow: a third of its neurons, on eight rows for each, a fifth of
    them scored."""
    widest = widest_head(distinct)
    width = min(LAST_ROUND.width, max(widest // 3, min(widest, 600), MIDDLE_ROUND.width))
    rows = min(LAST_ROUND.rows, max(8 * width, MIDDLE_ROUND.rows))
    return Round(rows, max(LAST_ROUND.scored // 2, rows // 5), width)


def rounds_for(distinct: int, columns: int) -> list[Round]:
    """The first round, and those after it that are wide enough to tell more. Few neurons say little of many columns."""
    first, last = FIRST_ROUND if columns <= FEW_COLUMNS else MIDDLE_ROUND, size_of_last_round(distinct)
    widest = min(last.width, distinct // 3)
    between = [MIDDLE_ROUND] if first is FIRST_ROUND and widest > MUCH_WIDER * MIDDLE_ROUND.width else []
    return [first, *between, *([last] if widest > WIDER * first.width else [])]


class Candidates(Search[Plan]):
    """Networks compared on samples of the rows (all of them when they are few), round after round."""

    def __init__(self, spec: Spec, whole: Sampled, merits: Merits | None = None) -> None:
        super().__init__(whole.rows.progress, merits)
        self.spec, self.whole, self.free = spec, whole, spec.head.encoder_ridge is None
        self.halves, self.classes = whole.halves, bool(whole.rows.n_classes)
        first, *self.later = rounds_for(whole.survey.distinct, whole.rows.d)
        self.rounds = 1 + len(self.later)
        self.trials: list[Trial] = []
        """Of this round."""
        self.trials.append(self.trial_of(first))
        if self.halves is not None and self.halves.both_ways:  # few rows: both ways round
            swapped = sampled(spec, self.whole, first)._replace(halves=self.halves.swapped())
            self.trials.append(Trial(spec, swapped, first))

    def trial_of(self, size: Round) -> Trial:
        """With what the round before knows of metrics; and of everything, where it had the same rows."""
        sample = sampled(self.spec, self.whole, size)
        if self.trials and sample.rows is self.trial.rows:
            return self.trial.widened(size)
        trial = Trial(self.spec, sample, size)
        if self.trials:
            trial.inherit(self.trial)
        return trial

    @property
    def trial(self) -> Trial:
        return self.trials[0]

    def judge(self, plan: Plan, near: float | None) -> Judged | None:
        shln, errors, scores, losses = plan.head == "shln", [], [], []
        near = self._ridge_of_relatives(plan) if near is None else near
        for trial in self.trials:
            if shln and self.free and not measured(plan):
                # with more than n/3 degrees of freedom every anchor fires on itself alone
                gram = trial.input(trial.grown(plan.input_scaling, plan.depth), plan).gram
                if gram.degrees_of_freedom(plan.encoder_ridge) > trial.survey.distinct / 3:
                    return None
            try:
                with np.errstate(over="ignore", invalid="ignore"):
                    head = trial.candidate(plan, near)
            except np.linalg.LinAlgError:  # numbers beyond the dtype's range: another scaling may do
                return None
            errors.append(_error_on_anchors(head.residuals(), trial.scale, trial.mean))
            scores.append(trial.judging(head))
            losses.append(row_losses(scores[-1], trial.scale, self.classes))
            near = head.output.ridge
            if len(scores) < len(self.trials) and self._hopeless(scores[0], losses[0]):
                break
        on_anchors, of_mean = (float(np.mean(each)) for each in zip(*errors, strict=True))
        about = self.columns_of(plan) | {"rows": self.trial.rows.n, "error_on_anchors": on_anchors}
        brittle = self.free and shln and not measured(plan) and on_anchors > max(of_mean, self.trial.spread)
        hopeless = len(scores) < len(self.trials)
        return Judged(scores, losses, head.output, self.trial.scale, about, brittle, hopeless)

    def finished(self, chosen: Plan) -> list[Row]:
        """The table for people, where nothing is averaged yet."""
        table = super().finished(chosen)
        for row in table:
            row["averaged"] = False
        return table

    def left(self) -> list[Row]:
        return [row | {"averaged": False} for row in super().left()]

    def columns_of(self, plan: Plan) -> Row:
        return plan._asdict() if plan.head == "shln" else plan._asdict() | dict.fromkeys(NEURON_COLUMNS)

    def _ridge_of_relatives(self, plan: Plan) -> float | None:
        """The output ridge of the last candidate like this one, to begin with."""
        like = (row for row in reversed(self.table) if family(row["plan"]) == family(plan))
        return next((row["ridge"] for row in like if row["plan"].direct == plan.direct), None)

    def _hopeless(self, first: Scored, losses: np.ndarray) -> bool:
        """Whether the first part of the rows says that it cannot win on all."""
        if self.best is None:
            return False
        more = losses - self.best[1][: len(losses)]
        return float(np.average(more, weights=first.chooser)) > HOPELESS * first.standard_error(more)

    def in_words(self, plan: Plan) -> str:
        scaling = "" if plan.input_scaling == "none" else f", {plan.input_scaling} input"
        if plan.head != "shln":
            return f"depth {plan.depth}{scaling}, no hidden neurons{', all layers' if plan.skip else ''}"
        if plan.rounds:
            scaling += f", metric of round {plan.rounds}{' (diagonal)' if plan.diagonal else ''} to the {plan.power:g}"
        links = (", direct links" if plan.direct else "") + (", all layers" if plan.skip else "")
        links += f", {plan.branches} stacks" if plan.branches > 1 else ""
        if plan.neurons == "radial":
            return f"depth {plan.depth}{scaling}, {plan.activation}, length {plan.length:g}{links}"
        return f"depth {plan.depth}{scaling}, {plan.activation} of {plan.neurons}, ridge {plan.encoder_ridge:g}{links}"

    # ----------------------------------------------------------------------------------- what is known so far

    def directed(self, depth: int) -> list[Row]:
        """Candidates whose neurons are directions, in the metric of the inputs."""
        rows = [row for row in self.sound() if row["plan"].head == "shln" and row["plan"].depth == depth]
        return [row for row in rows if not measured(row["plan"])]

    def radial(self) -> list[Row]:
        """Candidates whose neurons are distances."""
        return [row for row in self.sound() if row["plan"].head == "shln" and row["plan"].neurons == "radial"]

    def near(self, rows: list[Row], factor: float) -> bool:
        """Whether the best of these is within this factor of the best of this round."""
        beside = [row["loss"] for row in self.sound() if row["round"] == self.round]
        return bool(rows) and min(map(loss_of, rows)) <= factor * min(beside, default=math.inf)

    def finalists(self, count: int, of_a_family: int) -> list[Row]:
        """The best of this round, at most so many of a family: some gain more than others by being wide."""
        chosen: list[Row] = []
        rows = [row for row in self.sound() if row["round"] == self.round and self.may_win(row["plan"])]
        lowest = min(map(loss_of, rows), default=0.0)
        rows = [row for row in rows if row["loss"] <= lowest * (GAIN if row["plan"].head == "shln" else LITTLE_GAIN)]
        for row in sorted(rows, key=loss_of):
            relatives = [each for each in chosen if family(each["plan"]) == family(row["plan"])]
            if len(chosen) < count and len(relatives) < of_a_family:
                chosen.append(row)
        return sorted(chosen, key=self.table.index)  # of ties the simpler one wins, which came first


def plan_of(row: Row) -> Plan:
    """Of a row of a finished table."""
    return Plan(**{name: row[name] for name in Plan._fields if row[name] is not None})


def best_of(rows: list[Row]) -> Plan:
    return min(rows, key=loss_of)["plan"]


def measured(plan: Plan) -> bool:
    """Whether its neurons see another metric than the inputs' own pseudoinverse."""
    return plan.neurons == "radial" or plan.rounds > 0


def is_shaped(plan: Plan, like: Plan) -> bool:
    """Whether its neurons are of the kind of another's, under a metric from labels."""
    return plan.rounds > 0 and family(plan._replace(rounds=0)) == family(like._replace(rounds=0))


def family(plan: Plan) -> tuple:
    """Candidates that differ in little."""
    kernel = plan.activation if plan.neurons == "radial" else None
    return plan.head, plan.depth, kernel, plan.input_scaling == "pieces", plan.rounds > 0


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
