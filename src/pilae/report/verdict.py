"""How good a score is: its interval, what guessing and a linear model reach, and what to make of it in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

RESAMPLES = 500
"""Of the test rows, for the interval of R2."""

FEWEST_ROWS = 10
"""R2 of fewer rows has no interval."""

MOST_OF_IT, MANY_ROWS = 0.5, 50
"""Where a hundredth of at least so many rows makes up more of the squared error than this, R2 is about those rows."""

FAR_WORSE = 0.1
"""What is so far below guessing is worse than guessing, however wide its interval."""

UNSEEN = 5e-4
"""Scores that differ by less look the same."""

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


def verdict(summary: dict[str, Any]) -> list[str]:
    """What to make of a model, in sentences."""
    training, test = summary["training"], summary.get("test") or {}
    name = "accuracy" if "classes" in training else "R²"
    left_out = training["leave_one_out"]
    if test.get("score") is not None:
        sentences, useless = _of_test(test, name)
    elif left_out is not None:
        sentences, useless = _of_training(training, name)
    else:
        return []
    if left_out is None:
        return sentences
    same_place = summary.get("table", {}).get("held_out", False)  # drawn from the same rows: the difference is chance
    if not same_place and not training["stale"]:
        sentences += _of_places(training, test)
    return sentences + _of_peers(summary, left_out, name, useless)


def _of_places(training: dict[str, Any], test: dict[str, Any]) -> list[str]:
    """Whether test rows differ from training rows by more than both scores may be off."""
    interval, left_out = test.get("interval"), training["leave_one_out"]
    if interval is None:
        return []
    both = (1 + test["rows"] / training["rows"]) ** 0.5  # the leave-one-out score has an error, too
    low, high = (test["score"] + both * (end - test["score"]) for end in interval)
    if low <= left_out <= high:
        return []
    easier = "harder" if left_out > high else "easier"
    return [
        f"The test rows are {easier} than the training rows, where leave-one-out gives {left_out:.3f}: look "
        "whether they come from the same place."
    ]


def _of_training(training: dict[str, Any], name: str) -> tuple[list[str], bool]:
    left_out = training["leave_one_out"]
    way = "leaving out groups of" if training.get("grouped") else "leave-one-out on"
    first = f"By {way} training rows its {name} is {left_out:.3f}."
    if name == "R²" and left_out <= 0:
        return [first, "That is no better than guessing the mean: the columns may say nothing about the target."], True
    return [first], False


def _of_test(test: dict[str, Any], name: str) -> tuple[list[str], bool]:
    """Sentences, and whether they say that guessing is as good."""
    score, guess, interval = test["score"], test.get("guess"), test.get("interval")
    within = "" if interval is None else f" (95% interval {interval[0]:.3f} to {interval[1]:.3f})"
    if name == "accuracy":
        first = f"Of {test['rows']:,} test rows {score:.1%} are predicted right{within}"
        first += "." if guess is None else f"; always saying “{test['guess_class']}” would be right for {guess:.1%}."
    else:
        first = f"On {test['rows']:,} test rows R² is {score:.3f}{within}; guessing the mean has 0, no error 1."
        if "mean_absolute_error" in test:
            off, guessed = (amount(test[key]) for key in ("mean_absolute_error", "guess_absolute_error"))
            first += f" A prediction is off by {off} on average, the mean of all rows by {guessed}."
    if guess is None:
        return [first], False
    sentences, useless = [first], False
    heaviest = test.get("heaviest", {"share": 0.0})
    few_rows = heaviest["share"] > MOST_OF_IT and test["rows"] >= MANY_ROWS
    if few_rows:
        few = "One row makes" if heaviest["rows"] == 1 else f"{heaviest['rows']:,} rows make"
        sentences.append(f"{few} up {heaviest['share']:.0%} of the squared error: look at the worst rows below.")
    if guess - score > FAR_WORSE or (interval is not None and interval[1] < guess):
        way_out = "find out what these rows are before it is used" if few_rows else "do not use it"
        return [*sentences, f"That is worse than guessing: {way_out}."], True
    if not few_rows and score <= guess:
        sentences.append("That is no better than guessing: the columns may say nothing about the target.")
        useless = True
    elif not few_rows and interval is not None and interval[0] <= guess:
        sentences.append("That is not surely better than guessing: the columns may say nothing about the target.")
    return sentences, useless


def amount(value: float) -> str:
    """A size in the units of the target."""
    return f"{value:,.0f}" if 1000 <= value < 1e12 else f"{value:.3g}"


def _of_peers(summary: dict[str, Any], left_out: float, name: str, useless: bool) -> list[str]:
    """How it stands beside a linear model."""
    training, test = summary["training"], summary.get("test") or {}
    if training.get("is_linear"):
        return ["This is a linear model, a weighted sum of the columns: nothing more complicated was better."]
    linear = training.get("linear")
    if linear is None:
        return []
    gain, error = left_out - linear["score"], linear["standard_error"]
    figures = f"{name} {left_out:.3f} against {linear['score']:.3f} by leave-one-out on training rows"
    beside, lead = (test.get("linear") or {}).get("score"), 0.0
    if beside is not None and test.get("score") is not None:
        figures += f", {test['score']:.3f} against {beside:.3f} on test rows"
        lead = test["score"] - beside
    if useless and (gain > -2 * error or beside is None or beside <= test["guess"]):
        return []  # what guessing is as good as is not praised for beating something else
    if linear["score"] > 1 - UNSEEN and gain < UNSEEN:
        return [
            f"This is a linear model in all but name: a weighted sum of the columns is as good ({figures}). Look "
            "whether one of the columns is the target under another name."
        ]
    if gain > max(2 * error, UNSEEN):
        but = ", though not on the test rows" if lead < -UNSEEN else ""
        return [f"It is better than a linear model of the same columns{but} ({figures})."]
    if gain > min(-2 * error, -UNSEEN):
        return [
            f"A linear model of the same columns is about as good ({figures}): take that where a simple one counts."
        ]
    way = f'{summary["kind"]}(depth=0, head="ridge", input_scaling="standard")'
    return [f"A linear model of the same columns is better ({figures}): in Python {way} fits one."]
