"""Targets: classes, labels or numbers. How each is read, and what the outputs of a network mean for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_array, column_or_1d

from .._arrays import Array, as_labels, is_foreign, namespace, to_numpy
from .._base.saveable import saveable
from .._base.scalars import is_number
from .._engine.calibration import Calibration, class_calibration, label_calibration, weighted_quantile
from .._engine.curve import Curve
from .._engine.running import RunningScore
from .._engine.scores import Scored
from .check import check_finite, read_array, text_targets, unmasked
from .codes import class_numbers, codes_of, known_codes, label_masses
from .labels import all_classes, check_length, check_target_size, checked_labels, need_y, one_kind, plain_labels
from .rows import Rows
from .sources import Column, Piece, check_piece_targets

FEW_LABELS = 64
"""Targets that are looked at by eye: scikit-learn's checks would take longer than learning their rows."""

TAME_TARGET = 1e9
"""Numbers whose size is beyond doubt."""

ROUNDED_MASS = 1e-6
"""A class whose rows weigh less than minus this share of all has lost rows that were never in it."""


class Encoding(NamedTuple):
    """Targets of rows as `Rows` takes them: class numbers, or columns of numbers."""

    codes: Column = None
    n_classes: int = 0
    targets: Column = None


class Look(NamedTuple):
    """What a first reading of some rows of a source finds: how many there are, what they weigh, how many columns of
    targets they have, and of classes the weight of each."""

    n: int = 0
    weight: float = 0.0
    n_outputs: int = 0
    classes: np.ndarray = np.empty(0)
    mass: np.ndarray = np.empty(0)


class Seen(NamedTuple):
    """What came with rows that were predicted: class numbers, or numbers; weights; the ends of what answers may be."""

    codes: Column
    targets: Column
    weight: Column
    ends: tuple[np.ndarray, np.ndarray] | None = None


class Reading:
    """How the targets of a source are read: here not at all. And what models with classes and with numbers share."""

    @classmethod
    def look(cls, piece: Piece, name: str) -> Look:
        """A first reading of some rows; `name` is the estimator's."""
        return Look(piece.n, piece.total_weight)

    @classmethod
    def after(cls, look: Look) -> Self:
        """How to read targets that look like this."""
        return cls()

    def encoded(self, piece: Piece) -> Encoding:
        return Encoding()

    @property
    def n_classes(self) -> int:
        """Columns of a block that are made of class numbers."""
        return 0

    def margin(self, outputs: Array) -> Array:
        return outputs

    def calibrated(self, loo: Scored) -> Calibration | None:
        return None

    def columns_of(self, other: Targets) -> list[int | None] | None:
        """For each of these classes the output it has among the other ones; None in all where they are the same."""
        return None

    def check_mass(self, mass: np.ndarray, weight: float) -> None:
        """What the rows of each class weigh after some were taken out. Sums of numbers may be anything."""

    def smeared(self, loo: Scored) -> Self:
        """With what these leave-one-out results say of the way back from another scale, where there is one."""
        return self

    def check_shapes(self) -> None:
        """An error where the parts of targets that were read do not fit together."""


class NoTargets(Reading):
    """Rows alone."""


@saveable
@dataclass(frozen=True, eq=False)
class Classes(Reading):
    """One class a row; outputs are fitted to 0/1 columns, one for each class."""

    classes: np.ndarray
    multilabel: ClassVar[bool] = False

    @classmethod
    def look(cls, piece: Piece, name: str) -> Look:
        y = piece.target
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.ndim != 1:
            raise ValueError(f"{piece.where(0)}: targets of a source are one label a row, not {y.shape[1]} columns.")
        check_piece_targets(y, True, piece.where, name)
        return Look(piece.n, piece.total_weight, 1, *label_masses(y, piece.w))

    @classmethod
    def after(cls, look: Look) -> Self:
        return cls(look.classes)

    def encoded(self, piece: Piece) -> Encoding:
        return Encoding(codes_of(piece.target.reshape(-1), self.classes, piece.where), self.n_classes)

    @property
    def n_outputs(self) -> int:
        return len(self.classes)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    def answer(self, outputs: Array) -> Array:
        if isinstance(outputs, np.ndarray):
            return self.classes[outputs.argmax(axis=1)]
        return as_labels(self.classes, namespace(outputs).argmax(outputs, axis=1))

    def margin(self, outputs: Array) -> Array:
        return outputs[:, 1] - outputs[:, 0] if self.n_classes == 2 else outputs

    def probabilities(self, outputs: Array, calibration: Calibration) -> Array:
        return calibration.of_classes(outputs)

    def calibrated(self, loo: Scored) -> Calibration | None:
        return class_calibration(loo)

    def judged(self, loo: Scored) -> tuple[np.ndarray, float]:
        """Leave-one-out predictions of the scored rows, and their accuracy."""
        return self.answer(loo.outputs), float(np.average(self.merits(loo), weights=loo.judges))

    def merits(self, loo: Scored) -> np.ndarray:
        """What each row adds to the score: whether its leave-one-out prediction is right."""
        hits = self.answer(loo.outputs) == self.answer(loo.targets)
        return hits.reshape(len(hits), -1).all(axis=1).astype(float)

    def tested(self, score: RunningScore, outputs: np.ndarray, seen: Seen, now: Targets) -> RunningScore:
        """The score after rows whose outputs are those of a model with these targets; `now` has theirs too."""
        assert isinstance(now, Classes)
        return score.with_hits(self.answer(outputs) == now.classes[seen.codes], seen.weight)

    @staticmethod
    def score(y: ArrayLike, predicted: Array, weight: ArrayLike | None) -> float:
        return float(accuracy_score(plain_labels(y), to_numpy(predicted), sample_weight=weight))

    def original(self, encoding: Encoding) -> Column:
        """The targets as a head that is an estimator of its own is given them."""
        return encoding.targets if encoding.codes is None else self.classes[encoding.codes]

    def read(self, y: Array, rows: Rows, w: Column, name: str, announced: ArrayLike | None = None) -> Targets:
        """Give rows that come after `fit` their targets; the classes there are with them."""
        if announced is None and type(y) is np.ndarray and y.shape == (rows.n,) and rows.n <= FEW_LABELS:
            codes = known_codes(y, self.classes)
            if codes is not None:
                rows.codes, rows.n_classes = codes, self.n_classes
                return self
        labels = column_or_1d(checked_labels(y, rows.n, name))
        new = labels if w is None else labels[w > 0]
        known = self.with_labels(new if announced is None else np.concatenate([new, np.asarray(announced)]))
        rows.codes, rows.n_classes = class_numbers(labels, known.classes), known.n_classes
        return known

    def with_labels(self, labels: ArrayLike) -> Self:
        """The classes with these labels among them."""
        classes = one_kind(self.classes, np.unique(np.asarray(plain_labels(labels))))
        return self if len(classes) == len(self.classes) else replace(self, classes=classes)

    def met(self, look: Look, announced: ArrayLike | None) -> Self:
        """The classes there are with those of a source, and those announced for later."""
        return self.with_labels(look.classes if announced is None else np.concatenate([look.classes, announced]))

    def joined(self, other: Targets, number: int) -> Classes:
        if type(other) is not type(self) or (self.multilabel and other.n_outputs != self.n_outputs):
            raise _other_outputs(number, other.n_outputs, self.n_outputs)
        return self.with_labels(other.classes)

    def columns_of(self, other: Targets) -> list[int | None] | None:
        if not isinstance(other, Classes) or np.array_equal(self.classes, other.classes):
            return None
        at = {label: k for k, label in enumerate(other.classes.tolist())}
        return [at.get(label) for label in self.classes.tolist()]

    def check_mass(self, mass: np.ndarray, weight: float) -> None:
        if np.any(mass < -ROUNDED_MASS * max(1.0, weight)):
            short = self.classes.tolist()[int(np.argmin(mass))]
            raise ValueError(f"Cannot forget these rows: there are not so many of class {short!r} in the model.")


@saveable
@dataclass(frozen=True, eq=False)
class Labels(Classes):
    """Several labels a row, as a 0/1 matrix: one output for each."""

    multilabel: ClassVar[bool] = True

    @property
    def n_classes(self) -> int:
        return 0

    def answer(self, outputs: Array) -> Array:
        xp = namespace(outputs)
        return xp.astype(outputs > 0.5, xp.int64)

    def probabilities(self, outputs: Array, calibration: Calibration) -> Array:
        return calibration.of_labels(outputs)

    def calibrated(self, loo: Scored) -> Calibration | None:
        return label_calibration(loo)

    def tested(self, score: RunningScore, outputs: np.ndarray, seen: Seen, now: Targets) -> RunningScore:
        return score.with_hits(np.all(self.answer(outputs) == seen.targets, axis=1), seen.weight)

    def read(self, y: Array, rows: Rows, w: Column, name: str, announced: ArrayLike | None = None) -> Targets:
        targets, encoding = read_labels(y, rows.n, w, name)
        if not isinstance(targets, Labels) or targets.n_outputs != self.n_outputs:
            raise ValueError(f"y must be a 0/1 matrix of {self.n_outputs} columns, one for each label.")
        rows.targets = encoding.targets
        return self

    def met(self, look: Look, announced: ArrayLike | None) -> Self:
        raise ValueError("A model of several labels a row takes arrays only: sources bring one label a row.")


@saveable
@dataclass(frozen=True, eq=False)
class Numbers(Reading):
    """One column of numbers or several; `flat` where they came, and go, without a second axis."""

    n_outputs: int
    flat: bool
    curve: Curve | None = None
    """The scale that the network is fitted on, where it is not the user's."""

    @classmethod
    def look(cls, piece: Piece, name: str) -> Look:
        y = piece.target
        check_piece_targets(y, False, piece.where, name)
        return Look(piece.n, piece.total_weight, 1 if y.ndim == 1 else y.shape[1])

    @classmethod
    def after(cls, look: Look) -> Self:
        return cls(look.n_outputs, look.n_outputs == 1)

    def encoded(self, piece: Piece) -> Encoding:
        return Encoding(targets=self.onto(np.asarray(piece.target, dtype=np.float64).reshape(piece.n, -1)))

    def onto(self, targets: np.ndarray) -> np.ndarray:
        """The user's targets as the network is fitted to them."""
        return targets if self.curve is None else self.curve.onto(targets)

    def smeared(self, loo: Scored) -> Self:
        return self if self.curve is None else replace(self, curve=self.curve.smeared(loo))

    def of_users(self, loo: Scored) -> Scored:
        """Leave-one-out results in the user's units."""
        return loo if self.curve is None else self.curve.of_users(loo)

    def check_shapes(self) -> None:
        if self.curve is not None:
            self.curve.check_shapes(self.n_outputs)

    def answer(self, outputs: Array) -> Array:
        """The mean of the target."""
        return self._flat(outputs if self.curve is None else self.curve.mean(outputs))

    def between(self, loo: Scored, share: float) -> tuple[np.ndarray, np.ndarray]:
        """The user's targets between which this share of the scored rows has theirs."""
        targets = self.of_users(loo).targets
        low, high = (
            np.array([weighted_quantile(column, loo.weight, level) for column in targets.T])
            for level in (0.5 - share / 2, 0.5 + share / 2)
        )
        return self._flat(low[None, :])[0], self._flat(high[None, :])[0]

    def ends(self, outputs: Array, half: Array) -> tuple[Array, Array]:
        """Of intervals around outputs: the lower, the upper."""
        low, high = (outputs - half, outputs + half) if self.curve is None else self.curve.ends(outputs, half)
        return self._flat(low), self._flat(high)

    def _flat(self, values: Array) -> Array:
        return values[:, 0] if self.flat else values

    def probabilities(self, outputs: Array, calibration: Calibration) -> Array:
        raise TypeError("numbers have no probabilities")

    def judged(self, loo: Scored) -> tuple[np.ndarray, float]:
        """Leave-one-out predictions of the scored rows, and their R2."""
        loo = self.of_users(loo)
        return self._flat(loo.outputs), float(r2_score(loo.targets, loo.outputs, sample_weight=loo.chooser))

    def merits(self, loo: Scored) -> np.ndarray:
        """What each row adds to R2: minus its squared error, in variances."""
        loo = self.of_users(loo)
        mean = np.average(loo.targets, weights=loo.chooser, axis=0)
        variance = np.average((loo.targets - mean) ** 2, weights=loo.chooser, axis=0)
        return -np.mean((loo.targets - loo.outputs) ** 2 / np.where(variance > 0, variance, 1.0), axis=1)

    def tested(self, score: RunningScore, outputs: np.ndarray, seen: Seen, now: Targets) -> RunningScore:
        assert seen.targets is not None
        true, said = seen.targets.astype(float), outputs.astype(float)
        if self.curve is not None:
            true, said = self.curve.back(true), self.curve.mean(said)
        said = said if seen.ends is None else np.clip(said, *seen.ends)
        return score.with_numbers(true, said, seen.weight)

    @staticmethod
    def score(y: ArrayLike, predicted: Array, weight: ArrayLike | None) -> float:
        return float(r2_score(to_numpy(y), to_numpy(predicted), sample_weight=weight))

    def original(self, encoding: Encoding) -> Column:
        return self._flat(encoding.targets)

    def read(self, y: Array, rows: Rows, w: Column, name: str, announced: ArrayLike | None = None) -> Targets:
        if type(y) is np.ndarray and y.dtype == np.float64 and y.size <= FEW_LABELS and 0 < y.ndim < 3:
            columns = y.reshape(len(y), -1)
            if columns.shape == (rows.n, self.n_outputs) and np.abs(columns).max() < TAME_TARGET:  # False of NaN
                rows.targets = self.onto(columns)
                return self
        targets, encoding = read_numbers(y, rows.n, rows.dtype, name)
        assert encoding.targets is not None
        rows.targets = self.onto(encoding.targets)
        return self.met(targets, None)

    def met(self, look: Look | Numbers, announced: ArrayLike | None) -> Self:
        """As many columns as in `fit`."""
        if look.n_outputs != self.n_outputs:
            raise ValueError(f"y has {look.n_outputs} columns, but the model was fitted on {self.n_outputs}.")
        return self

    def joined(self, other: Targets, number: int) -> Numbers:
        if other.n_outputs != self.n_outputs:
            raise _other_outputs(number, other.n_outputs, self.n_outputs)
        return self


def _other_outputs(number: int, theirs: int | None, own: int | None) -> ValueError:
    return ValueError(f"Model {number} to merge has {theirs} outputs, this one {own}.")


def read_labels(y: Array, n: int, w: Column, name: str, announced: ArrayLike | None = None) -> tuple[Classes, Encoding]:
    """Targets of a classifier: one label a row, or a 0/1 matrix."""
    labels = checked_labels(y, n, name)
    if labels.ndim == 2:
        return Labels(np.arange(labels.shape[1])), Encoding(targets=np.asarray(labels != 0, dtype=np.float64))
    classes = all_classes(name, np.unique(labels if w is None else labels[w > 0]), announced)
    return Classes(classes), Encoding(class_numbers(labels, classes), len(classes))


def read_numbers(y: Array, n: int, dtype: str, name: str) -> tuple[Numbers, Encoding]:
    """Targets of a regressor that computes in `dtype`: float64 columns in NumPy."""
    need_y(name, y)
    if is_number(y):
        check_length(np.asarray(y), n)
    y = to_numpy(y) if is_foreign(y) else unmasked(y, "y")
    Y = read_array("y", partial(check_array, y, ensure_2d=False, ensure_all_finite=False, input_name="y"))
    if Y.dtype.kind in "OUS":
        raise text_targets()
    if Y.dtype.kind in "mM":
        raise ValueError(
            "y holds dates or times, and a regressor predicts numbers: give for example the days since a date, "
            "(y - y.min()) / numpy.timedelta64(1, 'D')."
        )
    check_length(Y, n)
    check_finite(Y, "y", name)
    columns = np.asarray(Y, dtype=np.float64).reshape(n, -1)
    check_target_size(np.max(np.abs(columns), axis=0), dtype)
    return Numbers(columns.shape[1], Y.ndim == 1), Encoding(targets=columns)


Targets = Classes | Numbers
"""What a network is fitted to, and what its outputs say."""
