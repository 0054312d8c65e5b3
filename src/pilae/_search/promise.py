"""Whether the network on all rows is what it promised to be on a sample of them, and what to do where it is not.

A sample says little where single rows carry the variance, or where few neurons behave unlike many. So the leave-one-out
error of the whole fit is compared with that of the trial. Where they part by more than their errors allow, where a
plain ridge or the mean would have done better, or where single rows make up the error, the next candidates are fitted
to all rows too, and the best of them stays. A second network, for the mean of both, has to keep its promise as well.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._arrays import to_numpy
from .._base.budget import active_budget
from .._base.warn import warn
from .._data.halves import FEW_ROWS
from .._network.averaged import mean_of, side_by_side
from .._network.growth import Grower
from .._network.head import LinearHead
from .._network.network import Network
from .._network.structure import Plan
from .builder import Builder
from .candidates import Row, family, plan_of
from .choice import Choice
from .search import loss_of, row_losses

APART = 3.0
"""Standard errors that a whole fit may be worse than its trial."""

SLACK = 0.2
"""And this share of the trial's error, which is that of another number of neurons."""

NO_BETTER = 1.05
"""An error so many times that of the mean is worse than saying nothing."""

UNSURE = 0.1
"""Where the standard error of a squared error is more than this share of it, single rows decide, and a sample of them
says little."""

NEARLY_NOTHING = 1e-6
"""An error, in variances, that nobody would improve."""

MORE = 4
"""Candidates that are fitted to all rows where the first has not kept its promise, or nobody can tell."""


class Whole(NamedTuple):
    """A candidate fitted to all rows."""

    choice: Choice
    grower: Grower
    head: LinearHead
    error: float
    standard_error: float


def kept(
    builder: Builder, choice: Choice, grower: Grower, head: LinearHead, alternative: Callable[[Row], Choice]
) -> tuple[Choice, Grower, LinearHead]:
    """The choice as it is, where its promise holds and is known well enough; else the best of it and the next ones.
    `alternative` makes a choice of a row of the table."""
    table = choice.table
    chosen = next((row for row in table if row["chosen"]), None)
    if chosen is None:
        return choice, grower, head
    whole = _judged(builder, choice, grower, head)
    broken = _broken(builder, whole, chosen, table)
    many = builder.survey.distinct >= FEW_ROWS  # of few all were in the trial, and what they say is noise
    numbers = builder.rows.n_classes == 0 and whole.error > NEARLY_NOTHING
    unsure = many and numbers and whole.standard_error > UNSURE * whole.error and not active_budget().used_up
    if not broken and not unsure:
        return choice, grower, head
    tried = [whole]
    for row in _others(table, choice.plan):
        other = alternative(row)
        layers = builder.grow(other.plan)
        try:
            another = builder.head(layers, other.plan, None, {}, other.near, other.shape)
        except np.linalg.LinAlgError:  # numbers beyond the dtype's range
            continue
        assert isinstance(another, LinearHead)
        tried.append(_judged(builder, other, layers, another))
    best = min(tried, key=lambda each: each.error if math.isfinite(each.error) else math.inf)
    _note(table, tried, best, builder.rows.n)
    if broken and many and best is not whole:
        warn(
            f"On all rows the network that was chosen on a sample of them has a squared leave-one-out error of "
            f"{whole.error:.3g} instead of {chosen['error']:.3g}: single rows may decide. Of {len(tried)} candidates "
            f"fitted to all rows the best, with {best.error:.3g}, was taken; search_ has them all."
        )
    if best.choice.plan.rounds:
        _forget_shaping(builder, best.head)
    return best.choice._replace(table=table, optimism=choice.optimism), best.grower, best.head


def averaged(
    builder: Builder, choice: Choice, network: Network, head: LinearHead
) -> tuple[Choice, Network, LinearHead]:
    """The first network beside the second one that the search has found for it, where on all rows, too, the mean of
    their outputs has the lower loss; else the first alone."""
    second = choice.second
    assert second is not None
    alone, grower = choice._replace(second=None), builder.grow(second.plan)
    try:
        beside = builder.head(grower, second.plan, None, {}, second.near, second.shape, second=True)
    except np.linalg.LinAlgError:  # numbers beyond the dtype's range
        return alone, network, head
    assert isinstance(beside, LinearHead)
    both = mean_of([builder.judging(each) for each in (head, beside)])
    classes = builder.rows.n_classes > 0
    losses = [row_losses(each, builder.scale, classes) for each in (both, builder.judging(head))]
    if not both.chooser.any() or not both.lower(*losses):
        return alone, network, head
    loo = mean_of([head.residuals(), beside.residuals()])
    heads = [
        replace(head, output=replace(head.output, loo=loo)),
        replace(beside, output=replace(beside.output, loo=None, scored_rows=None)),
    ]
    networks = [network, builder.network(grower, second.plan)]
    latest = next(row for row in reversed(choice.table) if plan_of(row) == second.plan)  # the last round may lack it
    for row in choice.table:
        row["averaged"] = row["chosen"] or row is latest
    return choice._replace(optimism=second.optimism), *side_by_side(networks, heads, builder.rows.d)


def _judged(builder: Builder, choice: Choice, grower: Grower, head: LinearHead) -> Whole:
    scores = builder.judging(head)
    scores = scores._replace(chooser=scores.weight)
    errors = scores.row_errors(builder.scale)
    return Whole(choice, grower, head, scores.squared_error(builder.scale), scores.standard_error(errors))


def _note(table: list[Row], tried: list[Whole], best: Whole, n: int) -> None:
    """The candidates on all rows as a round of their own."""
    number, columns = table[-1]["round"] + 1, dict.fromkeys(table[-1])
    for each in tried:
        about = {"round": number, "rows": n, "width": each.head.width, "loss": each.error, "error": each.error}
        about |= dict.fromkeys(("standard_error", "error_standard_error"), each.standard_error)
        about |= {"ridge": each.head.output.ridge, "brittle": False, "averaged": False, "seconds": 0.0}
        table.append(columns | each.choice.plan._asdict() | about)
    for row in table:
        row["chosen"] = row["round"] == number and row["loss"] == best.error


def _forget_shaping(builder: Builder, head: LinearHead) -> None:
    """Of a head that took the place of another: rows that shaped it are not scored."""
    output, judges = head.output, builder.judges
    output.loo = builder.judging(head)
    output.scored_rows = None if output.scored_rows is None else output.scored_rows[judges]


def _broken(builder: Builder, whole: Whole, chosen: Row, table: list[Row]) -> bool:
    """Whether it is worse than its trial was, than plain ridge was there, or than the mean."""
    if not math.isfinite(whole.error):
        return True
    mean = float(np.sum(to_numpy(builder.survey.targets.variance_a()) / builder.scale**2))
    # what was compared by log-loss may well have another order of squared errors
    same = [row["error"] for row in table if row["head"] == "ridge" and row["loss"] == row["error"]]
    plain = min(same, default=math.inf)
    room = APART * math.hypot(whole.standard_error, chosen["error_standard_error"]) + SLACK * chosen["error"]
    useless = whole.error > NO_BETTER * mean and chosen["error"] < mean / NO_BETTER
    return useless or whole.error > min(chosen["error"], plain) + room


def _others(table: list[Row], plan: Plan) -> list[Row]:
    """The best rows of other families, the latest round first, and the best of plain ridge."""
    rows = [row for row in table if not row["brittle"] and not row["chosen"] and plan_of(row) != plan]
    last = sorted(rows, key=lambda row: (-row["round"], row["loss"]))
    found: list[Row] = []
    for row in last:
        if len(found) < MORE - 1 and all(family(plan_of(row)) != family(plan_of(each)) for each in found):
            found.append(row)
    plain = [row for row in rows if row["head"] == "ridge" and plan_of(row) not in map(plan_of, found)]
    return found + sorted(plain, key=loss_of)[:1]
