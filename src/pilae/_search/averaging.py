"""Whether a second network beside the best one is worth having: their outputs averaged, judged like any candidate.

Networks of different kinds err on different rows. With few rows the choice between them is noise anyway, and the mean
of two is better than either where both are good; on many rows a second fit costs more than it gives.
"""

from typing import NamedTuple

import numpy as np

from .._network.averaged import mean_of
from .._network.structure import Plan
from .candidates import Candidates, family
from .search import loss_of, mean_loss, row_losses

MOST_ROWS = 20_000
"""Distinct rows up to which a second network is fitted."""

NEAR_ENOUGH = 2.0
"""One whose loss is more than this factor of the first one's is not tried beside it."""


class Pair(NamedTuple):
    """Two candidates as one; stands for the second in what a search keeps of its candidates."""

    first: Plan
    second: Plan


def second_network(search: Candidates, chosen: Plan) -> Plan | None:
    """The candidate of the last round, the best of its kind, whose mean with the chosen one has the lowest loss, where
    that is lower than the chosen one's alone; else None."""
    head, known, many = search.spec.head, search.row_of(chosen), search.whole.survey.distinct > MOST_ROWS
    if head.networks == 1 or not head.free or known is None or search.stopped or many:
        return None
    found: list[tuple[float, Plan]] = []
    for plan in _best_of_each_kind(search, chosen):
        if known["loss"] > 0 and search.row_of(plan)["loss"] <= NEAR_ENOUGH * known["loss"]:  # type: ignore[index]
            found.append((_loss_of_mean(search, chosen, plan), plan))
    loss, plan = min(found, key=lambda each: each[0], default=(np.inf, chosen))
    return plan if loss < known["loss"] else None


def _best_of_each_kind(search: Candidates, chosen: Plan) -> list[Plan]:
    """Candidates of the last round that were judged on all of its rows, one of every family but the chosen one's."""
    plans: list[Plan] = []
    rows = [row for row in search.sound() if row["round"] == search.round]
    for row in sorted(rows, key=loss_of):
        plan, kinds = row["plan"], [family(each) for each in (chosen, *plans)]
        if family(plan) not in kinds and all(plan in trial.fitted for trial in search.trials):
            plans.append(plan)
    return plans


def _loss_of_mean(search: Candidates, first: Plan, second: Plan) -> float:
    """Of the two together on the rows of the round; kept like that of a candidate."""
    parts = [mean_of([trial.judging(trial.fitted[plan]) for plan in (first, second)]) for trial in search.trials]
    each = [row_losses(part, trial.scale, search.classes) for part, trial in zip(parts, search.trials, strict=True)]
    losses = np.concatenate(each)
    search.keep(Pair(first, second), parts, losses)
    return mean_loss(losses, np.concatenate([part.chooser for part in parts]))
