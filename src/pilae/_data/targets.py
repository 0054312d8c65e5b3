"""Targets: classes, labels or numbers. How each is read, and what the outputs of a network mean for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_array, column_or_1d

from .._arrays import Array, as_labels, is_foreign, namespace, to_numpy
from .._base.saveable import saveable
from .._base.scalars import is_number
from .._engine.calibration import Calibration, class_calibration, label_calibration
from .._engine.scores import Scored
from .check import check_finite, in_float64, in_one_sentence, unmasked
from .labels import (
    all_classes,
    check_label_values,
    check_length,
    check_target_size,
    class_numbers,
    kind_of_labels,
    need_y,
    one_kind,
    plain_labels,
)
from .pieces import Piece, check_piece_targets, codes_of, label_masses, need_target

ROUNDED_MASS = 1e-6
"""A class whose rows weigh less than minus this share of all has lost rows that were never in it."""


class Encoding(NamedTuple):
    """Targets of rows as `Rows` takes them: class numbers, or columns of numbers."""

    codes: np.ndarray | None = None
    n_classes: int = 0
    targets: np.ndarray | None = None


class Look(NamedTuple):
    """What the targets of some rows of a source are: their classes with the weight of each, or how many columns."""

    classes: np.ndarray
    mass: np.ndarray
    n_outputs: int


class Later(NamedTuple):
    """What reading targets after `fit` needs: for whom, in which dtype, and classes that are announced."""

    name: str
    dtype: str
    announced: Any = None


class NoTargets:
    """Rows alone."""

    n_classes = 0

    @staticmethod
    def look(piece: Piece, name: str) -> Look:
        return Look(np.empty(0), np.empty(0), 0)

    def codes(self, piece: Piece) -> np.ndarray | None:
        return None

    def columns(self, piece: Piece) -> np.ndarray | None:
        return None


@saveable
@dataclass(frozen=True, eq=False)
class Classes:
    """One class a row; outputs are fitted to 0/1 columns, one for each class."""

    classes: np.ndarray
    multilabel: ClassVar[bool] = False

    @staticmethod
    def look(piece: Piece, name: str) -> Look:
        y = need_target(piece)
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.ndim != 1:
            raise ValueError(f"{piece.where(0)}: targets of a source are one label a row, not {y.shape[1]} columns.")
        check_piece_targets(y, True, piece.where, name)
        return Look(*label_masses(y, piece.w), 1)

    @property
    def n_outputs(self) -> int:
        return len(self.classes)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    def codes(self, piece: Piece) -> np.ndarray | None:
        return codes_of(need_target(piece).reshape(-1), self.classes, piece.where)

    def columns(self, piece: Piece) -> np.ndarray | None:
        return None

    def answer(self, outputs: Array) -> Array:
        if isinstance(outputs, np.ndarray):
            return self.classes[outputs.argmax(axis=1)]
        return as_labels(self.classes, namespace(outputs).argmax(outputs, axis=1))

    def margin(self, outputs: Array) -> Array:
        return outputs[:, 1] - outputs[:, 0] if len(self.classes) == 2 else outputs

    def probabilities(self, outputs: Array, calibration: Calibration) -> Array:
        return calibration.of_classes(outputs)

    def calibrated(self, loo: Scored) -> Calibration | None:
        return class_calibration(loo)

    def judged(self, loo: Scored) -> tuple[np.ndarray, float]:
        """Leave-one-out predictions of the scored rows, and their accuracy."""
        decided = np.argmax(loo.outputs, axis=1)
        hits = decided == np.argmax(loo.targets, axis=1)
        return self.classes[decided], float(np.average(hits, weights=loo.judges))

    def score(self, y: Any, predicted: Array, weight: Any) -> float:
        return accuracy(y, predicted, weight)

    def original(self, encoding: Encoding) -> np.ndarray | None:
        """The targets as a head that is an estimator of its own is given them."""
        return self.classes[encoding.codes]

    def read(self, y: Any, n: int, w: np.ndarray | None, later: Later) -> tuple[Targets, Encoding]:
        """Targets of rows that come after `fit`, and the classes there are with them."""
        need_y(later.name, y)
        values = np.asarray(plain_labels(y))
        check_label_values(values, n, later.name)
        kind_of_labels(values)
        labels = column_or_1d(values, warn=True)
        check_length(labels, n)
        new = labels if w is None else labels[w > 0]
        new = new if later.announced is None else np.concatenate([new, np.asarray(later.announced)])
        known = self.with_labels(new)
        return known, Encoding(class_numbers(labels, known.classes), len(known.classes))

    def with_labels(self, labels: Any) -> Classes:
        """The classes with these labels among them."""
        classes = one_kind(self.classes, np.unique(np.asarray(plain_labels(labels))))
        return self if len(classes) == len(self.classes) else Classes(classes)

    def met(self, look: Look, announced: Any) -> Classes:
        """The classes there are with those of a source, and those announced for later."""
        return self.with_labels(look.classes if announced is None else np.concatenate([look.classes, announced]))

    def joined(self, other: Targets, number: int) -> Classes:
        if not isinstance(other, Classes):
            raise _other_outputs(number, other.n_outputs, None)
        return self.with_labels(other.classes)

    def columns_of(self, other: Targets) -> list[int | None] | None:
        """For each of these classes the output it has among the other ones; None in all where they are the same."""
        assert isinstance(other, Classes)
        if self is other:
            return None
        at = {label: k for k, label in enumerate(other.classes.tolist())}
        return [at.get(label) for label in self.classes.tolist()]

    def check_mass(self, mass: np.ndarray, weight: float) -> None:
        """What the rows of each class weigh after some were taken out: not less than nothing."""
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

    def margin(self, outputs: Array) -> Array:
        return outputs

    def probabilities(self, outputs: Array, calibration: Calibration) -> Array:
        return calibration.of_labels(outputs)

    def calibrated(self, loo: Scored) -> Calibration | None:
        return label_calibration(loo)

    def judged(self, loo: Scored) -> tuple[np.ndarray, float]:
        decided = self.answer(loo.outputs)
        hits = (decided == self.answer(loo.targets)).all(axis=1)
        return decided, float(np.average(hits, weights=loo.judges))

    def original(self, encoding: Encoding) -> np.ndarray | None:
        return encoding.targets

    def read(self, y: Any, n: int, w: np.ndarray | None, later: Later) -> tuple[Targets, Encoding]:
        targets, encoding = read_labels(y, n, w, later.name)
        if not isinstance(targets, Labels) or targets.n_outputs != self.n_outputs:
            raise ValueError(f"y must be a 0/1 matrix of {self.n_outputs} columns, one for each label.")
        return self, encoding

    def met(self, look: Look, announced: Any) -> Labels:
        raise ValueError("A model of several labels a row takes arrays only: sources bring one label a row.")

    def joined(self, other: Targets, number: int) -> Labels:
        if not isinstance(other, Labels) or other.n_outputs != self.n_outputs:
            raise _other_outputs(number, other.n_outputs if isinstance(other, Labels) else None, self.n_outputs)
        return self

    def columns_of(self, other: Targets) -> list[int | None] | None:
        return None


@saveable
@dataclass(frozen=True, eq=False)
class Numbers:
    """One column of numbers or several; `flat` where they came, and go, without a second axis."""

    n_outputs: int
    flat: bool
    n_classes: ClassVar[int] = 0

    @staticmethod
    def look(piece: Piece, name: str) -> Look:
        y = need_target(piece)
        check_piece_targets(y, False, piece.where, name)
        return Look(np.empty(0), np.empty(0), 1 if y.ndim == 1 else y.shape[1])

    def codes(self, piece: Piece) -> np.ndarray | None:
        return None

    def columns(self, piece: Piece) -> np.ndarray | None:
        return np.asarray(need_target(piece), dtype=np.float64).reshape(int(piece.X.shape[0]), -1)

    def answer(self, outputs: Array) -> Array:
        return outputs[:, 0] if self.flat else outputs

    margin = answer

    def probabilities(self, outputs: Array, calibration: Calibration) -> Array:
        raise TypeError("numbers have no probabilities")

    def calibrated(self, loo: Scored) -> Calibration | None:
        return None

    def judged(self, loo: Scored) -> tuple[np.ndarray, float]:
        """Leave-one-out predictions of the scored rows, and their R2."""
        return self.answer(loo.outputs), float(r2_score(loo.targets, loo.outputs, sample_weight=loo.chooser))

    def score(self, y: Any, predicted: Array, weight: Any) -> float:
        return r2(y, predicted, weight)

    def original(self, encoding: Encoding) -> np.ndarray | None:
        assert encoding.targets is not None
        return encoding.targets[:, 0] if self.flat else encoding.targets

    def read(self, y: Any, n: int, w: np.ndarray | None, later: Later) -> tuple[Targets, Encoding]:
        targets, encoding = read_numbers(y, n, later.dtype, later.name)
        return self.met(targets, None), encoding

    def met(self, look: Look | Numbers, announced: Any) -> Numbers:
        """As many columns as in `fit`."""
        if look.n_outputs != self.n_outputs:
            raise ValueError(f"y has {look.n_outputs} columns, but the model was fitted on {self.n_outputs}.")
        return self

    def joined(self, other: Targets, number: int) -> Numbers:
        if other.n_outputs != self.n_outputs:
            raise _other_outputs(number, other.n_outputs, self.n_outputs)
        return self

    def columns_of(self, other: Targets) -> list[int | None] | None:
        return None

    def check_mass(self, mass: np.ndarray, weight: float) -> None:
        """Sums of numbers may be anything."""


def _other_outputs(number: int, theirs: int | None, own: int | None) -> ValueError:
    return ValueError(f"Model {number} to merge has {theirs} outputs, this one {own}.")


def accuracy(y: Any, predicted: Array, weight: Any) -> float:
    return float(accuracy_score(plain_labels(y), to_numpy(predicted), sample_weight=weight))


def r2(y: Any, predicted: Array, weight: Any) -> float:
    return float(r2_score(to_numpy(y), to_numpy(predicted), sample_weight=weight))


def read_labels(y: Any, n: int, w: np.ndarray | None, name: str, announced: Any = None) -> tuple[Classes, Encoding]:
    """Targets of a classifier: one label a row, or a 0/1 matrix."""
    need_y(name, y)
    y = plain_labels(y)
    values = np.asarray(y)
    check_label_values(values, n, name)
    if values.dtype == object and any(label is None for label in values.ravel().tolist()):
        raise ValueError("y holds None, which is no label: leave those rows out, or give them a class of their own.")
    kind = kind_of_labels(y)
    if kind == "multilabel-indicator":
        Y = check_array(y, dtype="numeric")
        check_length(Y, n)
        return Labels(np.arange(Y.shape[1])), Encoding(targets=np.asarray(Y != 0, dtype=np.float64))
    if kind == "multiclass-multioutput":
        raise ValueError(
            "y has several columns with more than two classes, which is not supported: fit one classifier per column, "
            "for example with sklearn.multioutput.MultiOutputClassifier."
        )
    y = column_or_1d(y, warn=True)
    check_length(y, n)
    classes = all_classes(name, np.unique(y if w is None else y[w > 0]), announced)
    return Classes(classes), Encoding(class_numbers(y, classes), len(classes))


def read_numbers(y: Any, n: int, dtype: str, name: str) -> tuple[Numbers, Encoding]:
    """Targets of a regressor that computes in `dtype`: float64 columns in NumPy."""
    need_y(name, y)
    if is_number(y):
        check_length(np.asarray(y), n)
    try:
        Y = check_array(
            to_numpy(y) if is_foreign(y) else unmasked(y, "y"),
            ensure_2d=False,
            dtype="numeric",
            ensure_all_finite=False,
            input_name="y",
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise in_one_sentence(error, "y") from None
    Y = in_float64(Y, "y")
    check_length(Y, n)
    check_finite(Y, "y", name)
    columns = np.asarray(Y, dtype=np.float64).reshape(n, -1)
    check_target_size(np.max(np.abs(columns), axis=0), dtype)
    return Numbers(columns.shape[1], Y.ndim == 1), Encoding(targets=columns)


Targets = Classes | Numbers
"""What a network is fitted to, and what its outputs say."""

Reading = Classes | Numbers | NoTargets
"""How the targets of a source are read."""
