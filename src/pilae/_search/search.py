"""A search: candidates compared by the leave-one-out loss of their output layer, one table of them, one winner.

Of classes and few rows the loss is the log-loss of calibrated probabilities (see `LOG_LOSS_ROWS`), else the squared
error. The lowest wins, and a tie goes to the one met first, which is the simpler one. A candidate that is brittle is
not chosen, unless all are.
"""

import math
import time
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from .._base.progress import Progress
from .._engine.calibration import log_losses
from .._network.head import LinearHead

LOG_LOSS_ROWS = 1000
"""With fewer scored rows classes are compared by log-loss. The squared error of a 0/1 target also counts how near an
output comes to 1 where the class is beyond doubt; many rows drown that, few do not."""

P = TypeVar("P")
"""A plan: a choice of everything that is searched, as a named tuple."""


class Judged(NamedTuple):
    """A candidate's head on the rows of a round, and what the table says of it."""

    head: LinearHead
    scale: np.ndarray
    classes: bool
    about: dict[str, Any]
    brittle: bool = False


class Search(Generic[P]):
    """Candidates and what was found of each. A kind of search says how one is judged, and in which order."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.round = progress, 1
        self.table: list[dict[str, Any]] = []
        self.best: tuple[P, np.ndarray] | None = None

    def judge(self, plan: P, near: float | None) -> Judged | None:
        """None where the plan is no choice. `near` is an output ridge to begin with."""
        raise NotImplementedError

    def in_words(self, plan: P) -> str:
        raise NotImplementedError

    def loss(self, plan: P, near: float | None = None) -> float:
        """Judge one candidate, note it, keep it if it is the best so far. Its loss; infinite where it is no choice."""
        for row in self.table:
            if row["plan"] == plan and row["round"] == self.round:
                return math.inf if row["brittle"] else row["loss"]
        start = time.perf_counter()
        self.progress.stage(f"candidate {len(self.table) + 1}: {self.in_words(plan)}")
        judged = self.judge(plan, near)
        if judged is None:
            return math.inf
        scores, output = judged.head.residuals(), judged.head.output
        error = scores.squared_error(judged.scale)
        if not math.isfinite(error):
            return math.inf
        few = judged.classes and len(scores.weight) < LOG_LOSS_ROWS
        losses = log_losses(scores) if few else scores.row_errors(judged.scale)
        loss = float(np.average(losses, weights=scores.chooser))
        self.table.append(
            {
                "plan": plan,
                "round": self.round,
                **judged.about,
                "width": int(output.coef.shape[0]),
                "loss": loss,
                "error": error,
                "standard_error": scores.standard_error(losses),
                "ridge": output.ridge,
                "ridge_guo2003": output.guo2003,
                "brittle": judged.brittle,
                "seconds": time.perf_counter() - start,
            }
        )
        if judged.brittle:
            return math.inf
        if self.best is None or scores.lower(losses, self.best[1]):
            self.best = plan, losses
        return loss

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
        last = self.table[-1]["round"] if self.table else 1
        for row in self.table:
            row["chosen"] = row.pop("plan") == chosen and row["round"] == last
        return self.table


def loss_of(row: dict[str, Any]) -> float:
    return row["loss"]
