"""Displays of networks, searches and streams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._arrays import Array
from .._base.extras import extra
from .._engine.linalg import rank_cutoff
from .._engine.running import RunningScore
from .._engine.widths import WidthPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

COLOUR, OTHER, FAINT = "#1b7f5c", "#c8553d", "#9aa5b1"


class Display:
    """Drawing on an axis of the caller's or a new one; the axis stays in `ax_`, its figure in `figure_`."""

    ax_: Axes
    figure_: FigureBase

    def plot(self, *, ax: Axes | None = None) -> Self:
        if ax is None:
            _, ax = extra("matplotlib.pyplot", "report", "A plot").subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        tidy(ax)
        return self

    def _draw(self, ax: Axes) -> None:
        raise NotImplementedError


def tidy(ax: Axes) -> None:
    """Without a box, and with a legend where something has a label."""
    ax.spines[["top", "right"]].set_visible(False)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False)


@dataclass
class WidthPathDisplay(Display):
    """Leave-one-out error of every width of the hidden layer.

    Attributes
    ----------
    path : WidthPath
    width : int
        The one chosen, in columns (direct links included).
    """

    path: WidthPath
    width: int

    @classmethod
    def from_estimator(cls, model: BaseEstimator, *, ax: Axes | None = None) -> Self:
        """Draw the width path of a fitted `PILAEClassifier` or `PILAERegressor`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from pilae import PILAEClassifier
        >>> from pilae.plot import WidthPathDisplay
        >>> model = PILAEClassifier(depth=0).fit(*load_iris(return_X_y=True))
        >>> display = WidthPathDisplay.from_estimator(model)
        >>> display.ax_.get_xlabel()
        'columns of the output layer'
        """
        check_is_fitted(model)
        path = getattr(model, "width_path_", None)
        if path is None:
            raise ValueError(
                "This model has no width path: its width was given, or it has no hidden layer. Fit with "
                "head='shln' to have one."
            )
        return cls(path, int(model.head_.output.coef.shape[0])).plot(ax=ax)

    def _draw(self, ax: Axes) -> None:
        path = self.path
        finite = {f"{ridge:.1e}": errors for ridge, errors in path.errors.items() if np.isfinite(errors).all()}
        columns = path.first + np.arange(len(path.errors[path.ridge]))
        draw_width_path(ax, columns, finite, f"{path.ridge:.1e}", path.standard_errors, self.width)


def draw_width_path(
    ax: Axes, columns: np.ndarray, errors: dict[str, np.ndarray], ridge: str, spread: np.ndarray | None, width: int
) -> None:
    """Errors by ridge, that of the chosen one with its standard errors, and the chosen width; limits that show the part
    where widths differ."""
    for name, values in errors.items():
        chosen = name == ridge
        label = f"ridge {name}" + (" (chosen)" if chosen else "")
        ax.plot(columns, values, color=COLOUR if chosen else FAINT, lw=2 if chosen else 1, label=label)
        if chosen and spread is not None:
            ax.fill_between(columns, values - spread, values + spread, color=COLOUR, alpha=0.2, lw=0)
    ax.axvline(width, color=OTHER, ls="--", lw=1, label=f"{width} columns")
    if ridge in errors:
        best = errors[ridge]
        ax.set_ylim(0.9 * best.min(), min(float(best.max()), 4 * float(best.min())) * 1.05)
    ax.set(xlabel="columns of the output layer", ylabel="squared leave-one-out error")
    if columns[-1] >= DECADES * columns[0]:
        plain_log(ax)


DECADES = 30
"""An axis from one number to so many times it is logarithmic: on shorter ones the ticks between powers collide."""


def plain_log(ax: Axes) -> None:
    """A logarithmic axis with plain numbers at 1, 2 and 5 times the powers of ten, and nothing between."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    ax.xaxis.set_minor_locator(NullLocator())


@dataclass
class DepthDisplay(Display):
    """Leave-one-out loss of the candidates of the search's first round, by depth, and the depth that was chosen.

    Each candidate is a point, the best of each depth are joined, the chosen depth is a dotted line. Losses of the last
    round are not drawn: they come from other rows and wider layers, and cannot be compared with these.

    Attributes
    ----------
    depths, losses : lists, one item for each candidate of the first round
    chosen : int
        The depth chosen, by the last round if there was one.
    """

    depths: list[int]
    losses: list[float]
    chosen: int

    @classmethod
    def from_estimator(cls, model: BaseEstimator, *, ax: Axes | None = None) -> Self:
        """Draw the search of a fitted `PILAEClassifier` or `PILAERegressor`."""
        check_is_fitted(model)
        if not model.search_:
            raise ValueError(
                "This model was not searched: its depth was given. Fit with depth='auto' to compare depths."
            )
        return cls.computed(model.search_).plot(ax=ax)

    @classmethod
    def computed(cls, search: list[dict[str, Any]]) -> Self:
        """The values alone, nothing drawn: of a table like `search_`."""
        first = [row for row in search if row["round"] == 1 and row["loss"] is not None]
        chosen = next(row["depth"] for row in search if row["chosen"])
        return cls([row["depth"] for row in first], [row["loss"] for row in first], chosen)

    def _draw(self, ax: Axes) -> None:
        depths, losses = np.asarray(self.depths), np.asarray(self.losses, dtype=float)
        ax.axvline(self.chosen, color=OTHER, ls=":", lw=2, label=f"depth chosen: {self.chosen}", zorder=0)
        ax.scatter(depths, losses, s=18, color=FAINT, label="candidates", zorder=2)
        each = np.unique(depths)
        ax.plot(each, [losses[depths == d].min() for d in each], color=COLOUR, label="best of each depth", zorder=1)
        ax.set(xlabel="autoencoder layers", ylabel="leave-one-out loss (first round)", xticks=each)


@dataclass
class ImportancesDisplay(Display):
    """How much each column moves the outputs: `feature_importances_`, the largest first.

    Attributes
    ----------
    names : list of str
    shares : list of float
        Of all columns, these included, the sum is 1.
    left_out : int
        Columns that are not drawn.
    """

    names: list[str]
    shares: list[float]
    left_out: int = 0

    @classmethod
    def from_estimator(cls, model: BaseEstimator, *, most: int = 15, ax: Axes | None = None) -> Self:
        """Draw the importances of a fitted `PILAEClassifier` or `PILAERegressor`, at most so many.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from pilae import PILAEClassifier
        >>> from pilae.plot import ImportancesDisplay
        >>> model = PILAEClassifier(depth=0).fit(*load_iris(return_X_y=True))
        >>> display = ImportancesDisplay.from_estimator(model, most=3)
        >>> len(display.names), display.left_out
        (3, 1)
        """
        check_is_fitted(model)
        found = model.feature_importances_
        names = getattr(model, "feature_names_in_", [f"column {k}" for k in range(len(found))])
        return cls.computed([str(name) for name in names], found, most).plot(ax=ax)

    @classmethod
    def computed(cls, names: list[str], importances: np.ndarray, most: int = 15) -> Self:
        """The values alone, nothing drawn."""
        order = np.argsort(-importances, kind="stable")[:most]
        return cls([names[k] for k in order], importances[order].tolist(), len(names) - len(order))

    def _draw(self, ax: Axes) -> None:
        places = np.arange(len(self.names))[::-1]
        ax.barh(places, self.shares, color=COLOUR, height=0.7)
        labels = [name if len(name) <= 24 else f"{name[:23]}…" for name in self.names]
        ax.set_yticks(places, [label.replace("$", r"\$") for label in labels])
        more = f" ({self.left_out} more columns)" if self.left_out else ""
        ax.set(xlabel=f"share of what moves the outputs{more}")


@dataclass
class SpectrumDisplay(Display):
    """Singular values of the data, and the cut-off below which they count as zero.

    Attributes
    ----------
    values : ndarray
        Relative to the largest, descending.
    cutoff : float
    rank : int
    """

    values: np.ndarray
    cutoff: float
    rank: int

    @classmethod
    def from_data(cls, X: Array, *, ax: Axes | None = None) -> Self:
        """Draw the spectrum of a table or of features, held in memory."""
        X = np.asarray(X, dtype=float)
        return cls.computed(X.reshape(len(X), -1)).plot(ax=ax)

    @classmethod
    def computed(cls, X: np.ndarray) -> Self:
        """The values alone, nothing drawn."""
        s = np.linalg.svd(X, compute_uv=False)
        values = s / s[0] if s[0] > 0 else s
        cutoff = rank_cutoff(X.shape[1], gram=True)
        return cls(values, cutoff, int(np.sum(values > cutoff)))

    def _draw(self, ax: Axes) -> None:
        shown = np.maximum(self.values, 1e-17)
        ax.semilogy(np.arange(1, len(shown) + 1), shown, color=COLOUR)
        ax.axhline(self.cutoff, color=OTHER, ls="--", lw=1, label=f"counts as zero: rank {self.rank} of {len(shown)}")
        ax.set(xlabel="singular value", ylabel="relative to the largest")
        ax.locator_params(axis="x", integer=True)


@dataclass
class CalibrationDisplay(Display):
    """How often the predicted class is right, against the probability it was given.

    Attributes
    ----------
    confidence, accuracy, weight : ndarray
        Of each bin: mean probability of the predicted class, share of right predictions, share of the rows.
    error : float
        Expected calibration error: the mean distance of the two.
    """

    confidence: np.ndarray
    accuracy: np.ndarray
    weight: np.ndarray
    error: float

    @classmethod
    def from_estimator(
        cls, model: BaseEstimator, X: Array, y: Array, *, bins: int = 10, ax: Axes | None = None
    ) -> Self:
        """Draw the calibration of a fitted classifier on rows that it has not seen."""
        check_is_fitted(model)
        return cls.from_predictions(y, model.predict_proba(X), model.classes_, bins=bins, ax=ax)

    @classmethod
    def from_predictions(
        cls, y: Array, probabilities: Array, classes: Array, *, bins: int = 10, ax: Axes | None = None
    ) -> Self:
        return cls.computed(y, probabilities, classes, bins=bins).plot(ax=ax)

    @classmethod
    def computed(cls, y: Array, probabilities: Array, classes: Array, *, bins: int = 10) -> Self:
        """The bins alone, nothing drawn: as many rows in each."""
        P = np.asarray(probabilities)
        confidence, right = P.max(axis=1), np.asarray(classes)[P.argmax(axis=1)] == np.asarray(y)
        edges = np.unique(np.quantile(confidence, np.linspace(0, 1, bins + 1)))
        bin_of = np.clip(np.searchsorted(edges, confidence, side="right") - 1, 0, max(len(edges) - 2, 0))
        count = np.bincount(bin_of)
        used = count > 0
        mean, hits = (np.bincount(bin_of, weights=v)[used] / count[used] for v in (confidence, right))
        weight = count[used] / len(P)
        return cls(mean, hits, weight, float(weight @ np.abs(mean - hits)))

    def _draw(self, ax: Axes) -> None:
        low = min(float(self.confidence.min()), float(self.accuracy.min()), 0.9)
        ax.plot([low, 1], [low, 1], color=FAINT, lw=1, label="as often as it says")
        ax.plot(self.confidence, self.accuracy, "o-", color=COLOUR, label=f"mean distance {self.error:.3f}")
        ax.set(xlabel="probability of the predicted class", ylabel="share of right predictions")


@dataclass
class StreamDisplay(Display):
    """How well the rows of a stream were predicted before they were learnt: a running score, late rows counting most.

    Attributes
    ----------
    rows, scores : ndarray
        After how many rows the score was what.
    half_life : float
        Rows after which a prediction counts half.
    measure : str
        What the score is: accuracy, or R².
    name, color : str or None
        Of the line, where several are drawn on one axis.
    """

    rows: np.ndarray
    scores: np.ndarray
    half_life: float
    measure: str = "accuracy"
    name: str | None = None
    color: str | None = None

    @classmethod
    def from_estimator(
        cls, model: BaseEstimator, *, ax: Axes | None = None, name: str | None = None, color: str | None = None
    ) -> Self:
        """Draw the stream of a `PILAEClassifier` or `PILAERegressor`, as a line of this name and colour.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from pilae import PILAEClassifier
        >>> from pilae.plot import StreamDisplay
        >>> X, y = load_iris(return_X_y=True)
        >>> model = PILAEClassifier(depth=0).fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2], test_first=True)
        >>> display = StreamDisplay.from_estimator(model)
        >>> display.rows.tolist(), bool(display.scores[-1] == model.stream_score_)
        ([75], True)
        """
        check_is_fitted(model)
        stream = getattr(model, "stream_", None)
        if stream is None or not stream.count:
            raise ValueError(
                "No row of this model was predicted before it was learnt: use partial_fit(test_first=True)."
            )
        return replace(cls.computed(stream), name=name, color=color).plot(ax=ax)

    @classmethod
    def computed(cls, stream: RunningScore) -> Self:
        """The values alone, nothing drawn: the curve up to now."""
        rows, scores = stream.rows, stream.scores
        if not len(rows) or rows[-1] != stream.count:
            rows, scores = np.append(rows, stream.count), np.append(scores, stream.score)
        return cls(rows, scores, stream.half_life, stream.measure)

    def _draw(self, ax: Axes) -> None:
        marker = "o" if len(self.rows) < 3 else None
        ax.plot(self.rows, self.scores, color=self.color or COLOUR, marker=marker, label=self.name)
        ax.set(
            xlabel="rows of the stream", ylabel=f"{self.measure} before learning\n(half-life {self.half_life:g} rows)"
        )
