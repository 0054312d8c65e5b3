"""From leave-one-out outputs to probabilities."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.special
from sklearn.linear_model import LogisticRegression

from .._arrays import Array, dtype_name, expit, namespace, space_of
from .._base.saveable import saveable
from .scores import Scored, rows_stood_for

MAPPED_ROWS, MAPPED_CLASSES = 100, 30
"""Probabilities may come from a multinomial logistic map with at least so many scored rows for each class, and at most
so many classes."""

LOWEST, HIGHEST = -3.0, 6.0
"""Of the logarithm of a temperature."""

MOST_STEPS = 100
"""Of Newton's method: with bisection at hand it needs a few."""

LARGEST_SCORE = 1e30
"""Outputs beyond it are cut to it before they become probabilities: these are 0 or 1, and no sum overflows."""


@saveable
@dataclass
class Calibration:
    """From outputs to probabilities: a factor t on the outputs, and for classes perhaps a multinomial logistic map.

    The probabilities of a row are softmax(t s), or softmax(t s A + b) with the map, where s are its outputs. The map
    never changes which class is the likeliest: where it would prefer another than the outputs do, just so much of
    softmax(t s) is mixed in that it does not, so that `predict` and `predict_proba` agree.
    """

    temperature: float
    weights: np.ndarray | None = None
    bias: np.ndarray | None = None

    def of_labels(self, scores: Array) -> Array:
        """The probability of each label by itself."""
        return expit(self.temperature * (2 * _bounded(scores) - 1))

    def of_classes(self, scores: Array) -> Array:
        """Probabilities of classes, which add up to 1."""
        scores = _bounded(scores)
        xp, space = namespace(scores), space_of(scores)
        logits = self.temperature * scores
        if self.weights is None:
            return _softmax(logits)
        kind = dtype_name(scores)
        P = _softmax(logits @ space.asarray(self.weights, kind) + space.asarray(self.bias, kind))
        plain = _softmax(logits)
        columns = xp.arange(P.shape[1], device=space.device)[None, :]
        wanted = columns == xp.argmax(scores, axis=1)[:, None]
        none = xp.zeros_like(P)
        over = P - xp.sum(xp.where(wanted, P, none), axis=1, keepdims=True)
        under = xp.sum(xp.where(wanted, plain, none), axis=1, keepdims=True) - plain
        share = xp.where(over > 0, over / (over + under + (over <= 0)), none)
        share = xp.max(share, axis=1, keepdims=True)
        share = xp.where(share > 0, xp.clip(1.00001 * share, max=1.0), share)  # a hair more than a tie
        return (1.0 - share) * P + share * plain


def _bounded(scores: Array) -> Array:
    """Outputs no larger than LARGEST_SCORE."""
    xp = namespace(scores)
    size = xp.max(xp.abs(scores), axis=1, keepdims=True)
    if not bool(xp.any(size > LARGEST_SCORE)):
        return scores
    return xp.where(size > LARGEST_SCORE, scores / xp.clip(size, min=1.0) * LARGEST_SCORE, scores)


def label_calibration(loo: Scored) -> Calibration:
    """One temperature for all labels."""
    margin = (2 * loo.targets - 1) * (2 * loo.outputs - 1)
    (w, more), labels = _with_two_more(loo), margin.shape[1]

    def slope(t: float) -> tuple[float, float]:
        p, q = scipy.special.expit(-t * margin), float(scipy.special.expit(-t))
        first = float(-w @ np.sum(margin * p, axis=1)) + more * labels * (1 - 2 * q)
        return first, float(w @ np.sum(margin**2 * p * (1 - p), axis=1)) + 2 * more * labels * q * (1 - q)

    return Calibration(_temperature(slope))


def class_calibration(loo: Scored) -> Calibration:
    """A temperature, or a multinomial logistic map where that has the lower log-loss on held-out rows.

    Both are fitted on leave-one-out outputs. The map is tried where every class has rows enough; held out is one half
    of the rows after the other.
    """
    t = class_temperature(loo)
    there = loo.weight > 0
    codes = np.argmax(loo.targets, axis=1)
    counts = np.bincount(codes[there], minlength=loo.targets.shape[1])
    if counts.min() < MAPPED_ROWS or len(counts) > MAPPED_CLASSES:
        return Calibration(t)
    half = (np.arange(len(codes)) if loo.group is None else loo.group) % 2 == 0  # they come in the order of a hash
    gain = 0.0
    for part in (half, ~half):
        fitted = loo.at(part)
        plain, mapped = Calibration(class_temperature(fitted)), _fit_map(fitted, codes[part])
        rest, rows = loo.outputs[~part], np.arange(len(codes))[~part]
        mapped_log, plain_log = (np.log(_of_class(by.of_classes(rest), codes[rows])) for by in (mapped, plain))
        gain += float(loo.weight[rows] @ (mapped_log - plain_log))
    return _fit_map(loo, codes) if gain > 0 else Calibration(t)


def _of_class(P: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return np.maximum(P[np.arange(len(codes)), codes], 1e-300)


def _fit_map(loo: Scored, codes: np.ndarray) -> Calibration:
    t = class_temperature(loo)
    weight = loo.weight / loo.weight.mean()  # only ratios matter
    model = LogisticRegression(max_iter=200, solver="newton-cholesky").fit(t * loo.outputs, codes, sample_weight=weight)
    A, b = model.coef_.T, model.intercept_
    if A.shape[1] == 1:  # two classes: the difference of their logits
        A, b = np.concatenate([-A, A], axis=1) / 2, np.concatenate([-b, b]) / 2
    return Calibration(t, A, b)


def _softmax(logits: Array) -> Array:
    xp = namespace(logits)
    e = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


def log_losses(loo: Scored) -> np.ndarray:
    """Of each scored row, the log-loss of its leave-one-out probabilities at the best temperature."""
    logits = class_temperature(loo, tolerance=1e-5) * _below_the_best(loo.outputs)
    return np.log(np.sum(np.exp(logits), axis=1)) - np.sum(logits * loo.targets, axis=1)


def class_temperature(loo: Scored, tolerance: float = 1e-12) -> float:
    """The factor t on the outputs that gives softmax(t s) the lowest log-loss on the leave-one-out outputs."""
    s, (w, more) = _below_the_best(loo.outputs), _with_two_more(loo)
    wanted, others = float(w @ np.sum(loo.targets * s, axis=1)), s.shape[1] - 1

    def slope(t: float) -> tuple[float, float]:
        p = np.exp(t * s)
        p /= np.sum(p, axis=1, keepdims=True)
        mean = np.sum(p * s, axis=1)
        q = others / (np.exp(t) + others)  # what is left for the other classes where one has 1 and they have 0
        first = float(w @ mean) - wanted + more * (1 - 2 * q)
        return first, float(w @ (np.sum(p * s * s, axis=1) - mean**2)) + 2 * more * q * (1 - q)

    return _temperature(slope, tolerance)


def _with_two_more(loo: Scored) -> tuple[np.ndarray, float]:
    """Shares of the rows, and of each of two more, of which one is right and one is wrong, with outputs of 1 and 0.

    That is the rule of succession: n rows without an error are no proof that there will be none, and without these two
    the log-loss of classes that are divided without an error would fall for ever with the temperature."""
    count = max(rows_stood_for(loo.weight, loo.unit), 1.0)
    return loo.weight / loo.weight.sum() * (count / (count + 2)), 1 / (count + 2)


def _below_the_best(outputs: np.ndarray) -> np.ndarray:
    """Outputs less the largest of their row: probabilities are the same, and no exponential overflows."""
    return outputs - np.max(outputs, axis=1, keepdims=True)


def _temperature(slope: Callable[[float], tuple[float, float]], tolerance: float = 1e-12) -> float:
    """Where the derivative of the log-loss, which is convex in t, changes sign: found to full accuracy, unlike a
    minimum. `slope` gives the first and the second derivative; Newton's steps are in log t, and where one leaves the
    interval that holds the root, or is not half as long as the last, the interval is halved instead."""
    low, high, u = LOWEST, HIGHEST, 0.5 * (LOWEST + HIGHEST)
    longest = 0.5 * (HIGHEST - LOWEST)
    for _ in range(MOST_STEPS):
        first, second = slope(float(np.exp(u)))
        low, high = (u, high) if first < 0 else (low, u)
        step = -first / (second * np.exp(u)) if second > 0 else np.inf
        if not low < u + step < high or abs(step) > longest:
            step = 0.5 * (low + high) - u
        u, longest = float(u + step), 0.5 * abs(step)
        if abs(step) <= tolerance:
            break
    return float(np.exp(u))


def weighted_quantile(values: np.ndarray, weight: np.ndarray, level: float) -> float:
    """The smallest of the values that has at least this share of the weight below it or in it."""
    order = np.argsort(values)
    mass = np.cumsum(weight[order]) / weight.sum()
    return float(values[order][min(int(np.searchsorted(mass, level)), len(values) - 1)])
