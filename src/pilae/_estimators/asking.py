"""What a fitted classifier or regressor is asked about rows."""

from typing import Any

import numpy as np

from .._arrays import Array, dtype_name, namespace, space_of
from .._data.dask import dask_score, is_dask
from .._data.opening import Question, answers
from .._data.sources import Source
from .fitted import FittedModel, Fitting


class Asking(Fitting[FittedModel]):
    """Questions to the head, and whether rows are like those that were seen."""

    def _ask(self, method: str, X: Any, called: str = "") -> Array:
        """What the head says of the rows; `called` is the estimator's own method where that has another name."""
        fitted = self.fitted_ or self._read()
        head, targets = fitted.head, fitted.targets
        head.ready()
        answer = getattr(head, method)

        seen, bounds = fitted.seen if method == "predict" else None, fitted.bounds

        def of(rows: Array) -> Array:
            said = answer(targets, fitted.features(rows))
            return said if seen is None or bounds is None else _not_beyond(said, bounds.far(rows), seen)

        question = Question(of, head.widest, called or method, at_once=head.is_plain)
        return answers(self, fitted.network, fitted.columns, X, question)

    def is_far(self, X: Any) -> Array:
        """Whether each row lies far outside what the model was fitted on: one of its numbers is beyond the range seen
        in its column by more than half of that range.

        Predictions for such rows are those of a row at about that distance, of numbers none beyond all targets seen,
        and not worth much. Columns that never
        varied do not count.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        array of bool, of shape (n_samples,)
        """
        fitted = self._read()
        if fitted.bounds is None:
            raise ValueError(
                "This model does not know the range of its rows, as it was saved by an earlier version: fit it again."
            )
        return answers(self, fitted.network, fitted.columns, X, Question(fitted.bounds.far, 0, "is_far"))

    def _score(self, X: Any, y: Any, sample_weight: Any) -> float:
        model = self._settled()
        targets = model._read().targets
        if is_dask(X):
            return dask_score(model, targets, X, y, sample_weight)
        if isinstance(X, Source) and y is None:
            y, sample_weight = X.targets()
        return targets.score(y, model.predict(X), sample_weight)


def _not_beyond(answers: Array, far: Array, seen: tuple[np.ndarray, np.ndarray]) -> Array:
    """Answers, those to far rows no higher and no lower than anything that was seen."""
    xp, space = namespace(answers), space_of(answers)
    if not bool(xp.any(far)):
        return answers
    low, high = (space.asarray(end, dtype_name(answers)) for end in seen)
    low, high, far = (low[0], high[0], far) if answers.ndim == 1 else (low, high, far[:, None])
    return xp.where(far, xp.minimum(xp.maximum(answers, low), high), answers)
