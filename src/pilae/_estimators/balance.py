"""Weights of classes: given, or so that every class weighs the same."""

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from .._base.scalars import is_integer
from .._data.check import TAME
from .._data.targets import Classes, Targets
from .._engine.class_sums import check_room
from . import parameters
from .fitted import FittedModel, Fitting


class ClassWeights(Fitting[FittedModel]):
    """What `class_weight` means for rows that `fit` takes, and for those that come later."""

    class_weight: Any
    head: Any
    keep_statistics: Any

    @property
    def _by_class(self) -> bool:
        """Whether sums are kept by class, so that classes can be balanced whatever comes and goes."""
        return isinstance(self.class_weight, str) and self.keep_statistics == "classes"

    def _check_additive(self, method: str) -> None:
        if not isinstance(self.class_weight, str):
            return
        if not self._by_class or (self.fitted_ and self.fitted_.head.linear(method).output.by_class is None):
            raise ValueError(
                f"{method} cannot be exact with class_weight='balanced', which depends on all rows: fit with "
                "keep_statistics='classes', or give the weight of each class as a dict, or of each row as "
                "sample_weight."
            )

    def _later_factor(self, targets: Targets) -> np.ndarray | None:
        """The weight of each class of rows that come after `fit`; one that class_weight does not name weighs 1."""
        if not isinstance(self.class_weight, dict) or not isinstance(targets, Classes):
            return None
        if targets.multilabel:
            raise weights_of_labels()
        return self._sound(np.array([self.class_weight.get(label, 1.0) for label in targets.classes.tolist()]))

    def _class_factor(self, classes: np.ndarray, mass: np.ndarray) -> np.ndarray | None:
        """The weight of each class, from class_weight and what the rows of each class weigh."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            width = getattr(self.head, "width", None)
            if self._by_class and is_integer(width):  # before hours of fitting, where it is known
                check_room(len(classes), int(width))
            return mass.sum() / (len(classes) * np.where(mass > 0, mass, np.inf))
        return self._sound(compute_class_weight(self.class_weight, classes=classes, y=classes))

    def _sound(self, factor: np.ndarray) -> np.ndarray:
        """Weights of classes that can be computed with."""
        if not np.all(np.isfinite(factor)) or np.any(factor < 0) or not np.any(factor > 0):
            raise parameters.bad(self, "class_weight", "a dict of finite weights of at least 0, not all of them 0")
        if np.any(np.abs(np.frexp(factor)[1]) >= TAME):
            raise parameters.bad(self, "class_weight", "a dict of weights between 1e-19 and 1e19, or 0")
        return factor


def weights_of_labels() -> ValueError:
    return ValueError("'class_weight' is for one label per row: with multilabel targets use sample_weight.")
