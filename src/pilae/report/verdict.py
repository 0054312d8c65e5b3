"""How good a score is: its interval, what guessing and a linear model reach, and what to make of it in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._network.linear import is_linear

RESAMPLES = 500
"""Of the test rows, for the interval of R2."""

FEWEST_ROWS = 10
"""R2 of fewer rows has no interval."""

MOST_OF_IT, MANY_ROWS = 0.5, 50
"""Where a hundredth of at least so many rows makes up more of the squared error than this, R2 is about those rows."""

SURE = 1.96
"""Standard errors on either side of an interval of 95%."""


def accuracy_interval(right: float, n: int) -> list[float]:
    """Wilson's interval of 95% for a share of right answers among n."""
    z = SURE
    middle, half = right + z**2 / (2 * n), z * (right * (1 - right) / n + z**2 / (4 * n**2)) ** 0.5
    return [(middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n)]


def r2_interval(y: np.ndarray, predicted: np.ndarray) -> list[float] | None:
    """The middle 95% of R2 over resampled rows; None where the rows are too few, or do not differ."""
    n, squares, y = len(y), (y - predicted) ** 2, y - y.mean()
    if n < FEWEST_ROWS or not y.any():
        return None
    counts = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    total = counts @ y**2 - (counts @ y) ** 2 / n
    some = total > 1e-6 * (y @ y)
    return np.quantile(1 - (counts @ squares)[some] / total[some], [0.025, 0.975]).tolist()


def peers(model: BaseEstimator) -> dict[str, Any]:
    """Whether this is a linear model, and what one reaches on the training rows by leave-one-out."""
    fitted = model.fitted_
    if not hasattr(fitted, "head"):
        return {}
    # of the rows of `fit`, as the leave-one-out score is
    linear = None if fitted.linear is None or fitted.loo_score is None else fitted.linear._asdict()
    return {"is_linear": is_linear(fitted.network, fitted.head, fitted.targets), "linear": linear}


def verdict(summary: dict[str, Any]) -> list[str]:
    """What to make of a model, in sentences."""
    training, test = summary["training"], summary.get("test")
    name = "accuracy" if "classes" in training else "R²"
    sentences = [] if test is None or test["score"] is None else _of_test(test, name)
    left_out, interval = training["leave_one_out"], (test or {}).get("interval")
    if left_out is None:
        return sentences
    if not sentences:
        way = "leaving out groups of" if training.get("grouped") else "leave-one-out on"
        sentences.append(f"By {way} training rows its {name} is {left_out:.3f}.")
    elif interval is not None and not training["stale"] and not interval[0] <= left_out <= interval[1]:
        easier = "harder" if left_out > interval[1] else "easier"
        sentences.append(
            f"The test rows are {easier} than the training rows, where leave-one-out gives {left_out:.3f}: look "
            "whether they come from the same place."
        )
    return sentences + _of_peers(training, left_out, name)


def _of_test(test: dict[str, Any], name: str) -> list[str]:
    score, guess, interval = test["score"], test.get("guess"), test.get("interval")
    within = "" if interval is None else f" (95% interval {interval[0]:.3f} to {interval[1]:.3f})"
    if name == "accuracy":
        first = f"Of {test['rows']:,} test rows {score:.1%} are predicted right{within}"
        first += "." if guess is None else f"; always saying “{test['guess_class']}” would be right for {guess:.1%}."
    else:
        first = f"On {test['rows']:,} test rows R² is {score:.3f}{within}; guessing the mean has 0, no error 1."
        if "mean_absolute_error" in test:
            off, guessed = (_amount(test[key]) for key in ("mean_absolute_error", "guess_absolute_error"))
            first += f" A prediction is off by {off} on average, the mean of all rows by {guessed}."
    if guess is None or interval is None:
        return [first]
    heaviest = test.get("heaviest", {"share": 0.0})
    if heaviest["share"] > MOST_OF_IT and test["rows"] >= MANY_ROWS:
        few = "One row makes" if heaviest["rows"] == 1 else f"{heaviest['rows']:,} rows make"
        return [first, f"{few} up {heaviest['share']:.0%} of the squared error: look at the worst rows below."]
    if interval[1] < guess:
        return [first, "That is worse than guessing: do not use it."]
    if interval[0] <= guess:
        return [first, "That is not surely better than guessing: the columns may say nothing about the target."]
    return [first]


def _amount(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < 1e12 else f"{value:.3g}"


def _of_peers(training: dict[str, Any], left_out: float, name: str) -> list[str]:
    if training.get("is_linear"):
        return ["This is a linear model, a weighted sum of the columns: nothing more complicated was better."]
    linear = training.get("linear")
    if linear is None:
        return []
    gain, error = left_out - linear["score"], linear["standard_error"]
    figures = f"{name} {linear['score']:.3f} against {left_out:.3f} by leave-one-out on training rows"
    if gain > 2 * error:
        return [f"It is better than a linear model of the same columns ({figures})."]
    if gain > -2 * error:
        return [
            f"A linear model of the same columns is about as good ({figures}): take that where a simple one counts."
        ]
    return [f"A linear model of the same columns is better ({figures}): fit with depth=0 and head='ridge'."]
