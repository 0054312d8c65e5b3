"""A search: candidates compared by the leave-one-out loss of their output layer, one table of them, one winner.

Of classes the loss is the log-loss of calibrated probabilities, else the squared error. The lowest wins, and a tie goes
to the one met first, which is the simpler one. A candidate that is brittle is not chosen, unless all are.
"""

import copy
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from .._base.budget import active_budget
from .._base.progress import Progress
from .._engine.calibration import log_losses
from .._engine.scores import Scored, concatenated, pooled
from .._network.output import Output

BAGS = 200
"""Draws of the bootstrap."""

NO_GAIN = 1.5
"""A look ahead takes candidates that are not judged yet for so much worse than the best: they are not refined."""

Merits = Callable[[Scored], np.ndarray]
"""What each row adds to the score that is reported."""

P = TypeVar("P")
"""A plan: a choice of everything that is searched, as a named tuple."""


class Judged(NamedTuple):
    """A candidate on the rows of a round, and what the table says of it."""

    scores: list[Scored]
    """Leave-one-out results, one part of the rows after another: the same rows for all candidates of a round."""
    losses: list[np.ndarray]
    """Of these rows, as candidates are compared."""
    output: Output
    scale: np.ndarray
    about: dict[str, Any]
    brittle: bool = False
    hopeless: bool = False
    """Whether the rest of the rows were not asked, because the first part said that it cannot win."""


class OutOfTime(Exception):
    """The time is used up, and there is a candidate to end with."""


class Search(Generic[P]):
    """Candidates and what was found of each. A kind of search says how one is judged, and in which order."""

    def __init__(self, progress: Progress, merits: Merits | None = None) -> None:
        self.progress, self.round, self.merits = progress, 1, merits
        self.rounds = 1
        """How many there will be."""
        self.budget, self.stopped = active_budget(), False
        self._kept: dict[tuple[int, Any], tuple[np.ndarray, np.ndarray]] = {}
        """Losses and merits of the rows, by round and plan."""
        self.table: list[dict[str, Any]] = []
        self.untried: list[tuple[int, P]] = []
        """Where the time was used up: rounds and plans that would have come next."""
        self.best: tuple[P, np.ndarray, np.ndarray] | None = None
        """With its losses and squared errors of the rows."""
        self._led: set[tuple[int, P]] = set()
        """Those that were the best when they were met."""
        self._refused: set[tuple[int, P]] = set()
        """Those that are no choice."""
        self._weights: dict[int, np.ndarray] = {}
        """Of the rows, by round."""
        self._groups: dict[int, np.ndarray | None] = {}
        self._known: Search[P] | None = None
        """In a look ahead, the search that it is of."""
        self._planned: list[P] = []
        """And what it has met that is not judged yet."""

    def walk(self) -> P | None:
        """One round: every candidate, by `loss`. Which comes next may depend on what was found, and on nothing else.
        Returns what it ends with, where that is not the lowest loss."""
        raise NotImplementedError

    def judge(self, plan: P, near: float | None) -> Judged | None:
        """None where the plan is no choice. `near` is an output ridge to begin with."""
        raise NotImplementedError

    def may_win(self, plan: P) -> bool:
        """Whether this is what was asked for, and not only a step on the way."""
        return True

    def in_words(self, plan: P) -> str:
        raise NotImplementedError

    def columns_of(self, plan: P) -> dict[str, Any]:
        """A plan as columns of the table."""
        return plan._asdict()  # type: ignore[attr-defined]

    def go(self) -> P | None:
        """Walk a round to its end, or until the time is used up; then what it has still to try is written down."""
        try:
            return self.walk()
        except OutOfTime:
            self.stopped = True
            self.untried += [(self.round, plan) for plan in self.ahead()]
            return None

    def ahead(self) -> list[P]:
        """What this round has still to try, if nothing of it is better than the best so far.

        What comes next depends on what is found: so the way is gone again from the start of the round, with what is
        known of each candidate, and as if all others were worse than the best: more may come, and fewer seldom.
        """
        scout = copy.copy(self)
        scout.table = [row for row in self.table if row["round"] < self.round]
        scout.best, scout._known, scout._planned = None, self, []
        scout.walk()
        return scout._planned

    def _supposed(self, plan: P) -> float:
        """In a look ahead, the loss that is known, or one that nothing follows from."""
        assert self._known is not None
        key, losses = (self.round, plan), [row["loss"] for row in self.sound() if row["round"] == self.round]
        if key in self._known._refused:
            return math.inf
        row = self._known.row_of(plan)
        if row is None:
            self._planned.append(plan)
            loss = NO_GAIN * min(losses, default=1.0)
            row = {"plan": plan, "round": self.round, "loss": loss, "brittle": False, "ridge": None}
        self.table.append(row)
        if key in self._known._led or self.best is None:
            self.best = plan, np.ones(0), np.ones(0)
        return math.inf if row["brittle"] else row["loss"]

    def row_of(self, plan: P) -> dict[str, Any] | None:
        """Of this round."""
        return next((row for row in self.table if row["plan"] == plan and row["round"] == self.round), None)

    def _announce(self, plan: P) -> None:
        """Which candidate this is, and of how many as far as one can see now."""
        if not self.progress.heard:
            return
        number = sum(row["round"] == self.round for row in self.table) + 1
        place = f"candidate {number} of {number - 1 + len(self.ahead())}"
        if self.rounds > 1:
            place = f"round {self.round} of {self.rounds}, {place}"
        self.progress.stage(f"{place}: {self.in_words(plan)}")

    def loss(self, plan: P, near: float | None = None) -> float:
        """Judge one candidate, note it, keep it if it is the best so far. Its loss; infinite where it is no choice."""
        row = self.row_of(plan)
        if row is not None:
            return math.inf if row["brittle"] else row["loss"]
        if self._known is not None:
            return self._supposed(plan)
        if (self.round, plan) in self._refused:
            return math.inf
        if self.best is not None and self.budget.used_up:
            raise OutOfTime
        start = time.perf_counter()
        self._announce(plan)
        judged = self.judge(plan, near)
        scores = None if judged is None else joined(judged.scores)
        if judged is None or scores is None or not math.isfinite(scores.squared_error(judged.scale)):
            self._refused.add((self.round, plan))
            return math.inf
        return self._noted(plan, judged, scores, time.perf_counter() - start)

    def _noted(self, plan: P, judged: Judged, scores: Scored, seconds: float) -> float:
        """A candidate in the table; its loss."""
        output, losses, errors = judged.output, np.concatenate(judged.losses), scores.row_errors(judged.scale)
        if judged.hopeless:
            assert self.best is not None
            loss, error = map(partial(self._behind, scores.chooser), (losses, errors), self.best[1:])
        else:
            loss, error = (mean_loss(each, scores.chooser) for each in (losses, errors))
        self.table.append(
            {
                "plan": plan,
                "round": self.round,
                **judged.about,
                "width": int(output.coef.shape[0]),
                "loss": loss,
                "error": error,
                "standard_error": scores.standard_error(losses),
                "error_standard_error": scores.standard_error(errors),
                "ridge": output.ridge,
                "ridge_guo2003": output.guo2003,
                "brittle": judged.brittle,
                "seconds": seconds,
            }
        )
        if judged.brittle:
            return math.inf
        if not self.may_win(plan) or judged.hopeless:
            return loss
        self.keep(plan, judged.scores, losses)
        self._weights[self.round], self._groups[self.round] = scores.chooser, scores.group
        if self.best is None or scores.lower(losses, self.best[1]):
            self.best = plan, losses, errors
            self._led.add((self.round, plan))
        return loss

    def _behind(self, weights: np.ndarray, losses: np.ndarray, of_best: np.ndarray) -> float:
        """The mean loss of a candidate that was asked about the first rows alone: that of the best, and by how much it
        was behind it on these."""
        more = losses - of_best[: len(losses)]
        return rounded(mean_loss(of_best, self._weights[self.round]) + float(np.average(more, weights=weights)))

    def keep(self, plan: Any, scores: list[Scored], losses: np.ndarray) -> None:
        """Remember what it lost and won on each row of this round."""
        if self.merits is not None:
            self._kept[self.round, plan] = losses, np.concatenate([self.merits(part) for part in scores])

    def optimism(self, chosen: Any, seed: int) -> float:
        """What of the winner's score is the luck of having been chosen by the rows that it is scored on.

        Rows, or groups, are drawn again and again, as many as there are: the best on these is scored on those that were
        not drawn (out of the bag), where it is one of many candidates and has had no luck.
        """
        kept = [each for (number, _), each in self._kept.items() if number == self.round]
        if len(kept) < 2 or (self.round, chosen) not in self._kept:
            return 0.0
        group, weights = self._groups[self.round], self._weights[self.round]
        of_groups = [pooled(group, weights, *each)[1] for each in kept]
        losses, merits = (np.stack(part) for part in zip(*of_groups, strict=True))
        (weight, _), n = pooled(group, weights), losses.shape[1]
        drawn = np.random.default_rng([seed, 3]).multinomial(n, np.full(n, 1.0 / n), BAGS)
        best = np.argmin((drawn * weight) @ losses.T, axis=1)
        left = (drawn == 0) * weight
        total = left.sum(axis=1)
        scored = np.einsum("bi,bi->b", left, merits[best])[total > 0] / total[total > 0]
        own = float(np.average(self._kept[self.round, chosen][1], weights=weights))
        return max(0.0, own - float(scored.mean())) if len(scored) else 0.0

    def sound(self) -> list[dict[str, Any]]:
        """The candidates that may be chosen."""
        return [row for row in self.table if not row["brittle"]]

    def winner(self) -> P:
        if self.best is None and self.table:  # nothing but brittle ones
            return min(self.table, key=loss_of)["plan"]
        if self.best is None:
            raise ValueError(
                "No network could be fitted: the numbers in X or y are too large or too small for their dtype. Rescale "
                "them, or give float64."
            )
        return self.best[0]

    def finished(self, chosen: P) -> list[dict[str, Any]]:
        """The table for people: plans as columns, and which was chosen."""
        last = min(self.round, self.table[-1]["round"]) if self.table else 1
        for row in self.table:
            row["chosen"] = row.pop("plan") == chosen and row["round"] == last
        return self.table

    def left(self) -> list[dict[str, Any]]:
        """What was not tried for want of time, as rows of the same table."""
        nothing = dict.fromkeys(self.table[0]) | {"brittle": False, "chosen": False, "seconds": 0.0}
        return [nothing | {"round": number} | self.columns_of(plan) for number, plan in self.untried]


def row_losses(scores: Scored, scale: np.ndarray, classes: bool) -> np.ndarray:
    """Of classes the log-loss: the squared error of a 0/1 target also counts how near an output comes to 1 where the
    class is beyond doubt."""
    return log_losses(scores) if classes else scores.row_errors(scale)


def joined(parts: list[Scored]) -> Scored:
    """Results of one part of the rows after another."""
    if len(parts) == 1:
        return parts[0]
    numbers, count = [], 0
    for part in parts:  # each numbers its own groups
        numbers.append(None if part.group is None else count + part.group)
        count += len(part.weight)
    parts = [part._replace(group=group) for part, group in zip(parts, numbers, strict=True)]
    return Scored(*map(concatenated, zip(*parts, strict=True)))


def mean_loss(losses: np.ndarray, weights: np.ndarray) -> float:
    """Of rows of these weights."""
    return rounded(float(np.average(losses, weights=weights)))


def rounded(loss: float) -> float:
    """To six digits: candidates that are the same but for rounding are a tie, and the first of them stays."""
    return float(f"{loss:.5e}")


def loss_of(row: dict[str, Any]) -> float:
    return row["loss"]
