"""Rows that come and go after `fit`, as methods: arguments in, functions of `update` called."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import sklearn

from .._base.scalars import seed_of
from .._data.blocks import unit_of
from .._data.check import check_weight, scaled_weight
from .._data.groups import check_groups_again, check_no_groups, give_groups, read_groups
from .._data.opening import is_few, is_streamed, rows_to_ask, stream_to_add
from .._data.rows import Rows, times_factor
from .._data.targets import Targets
from . import stream, update
from .arrival import Arrival, check_window_order
from .fitted import FittedModel, Fitting, attribute

UNTESTED = "no rows were predicted before they were learnt, which partial_fit(X, y, test_first=True) does"


class Updating(Fitting[FittedModel]):
    """`partial_fit`, `forget`, `fork`, `merge` and `recalibrate` of a classifier or regressor."""

    stream_ = attribute("tested", missing=UNTESTED)
    stream_score_ = attribute("tested.score", missing=UNTESTED)
    rows_in_ = attribute("rows_in", missing="it keeps no sums of rows")

    def _checked(self) -> object:
        """An error where a parameter is not what it may be."""
        raise NotImplementedError

    def _first_fit(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, fit_params: dict, groups: Any = None
    ) -> FittedModel:
        raise NotImplementedError

    def _later_rows(
        self, fitted: FittedModel, method: str, X: Any, y: Any, sample_weight: Any, classes: Any = None
    ) -> tuple[Rows, Targets]:
        """Rows for an update by `method`, and the targets there are with them."""
        running, network = self._running(), fitted.network
        if is_streamed(X):
            fitted.check_streamed()
            kind = type(fitted.targets)
            source = stream_to_add(running, network, fitted.columns, X, y, sample_weight, kind)
            targets = fitted.targets.met(source.look, classes)
            source.read_as(targets)
            source.factor = self._later_factor(targets)
            return source, targets
        if is_few(X, network, fitted.columns):  # looking at them closely would take longer than what is to be done
            rows = Rows(X, network.space, block_rows=running.block_rows, dtype=network.dtype)
        else:
            rows = rows_to_ask(running, network, fitted.columns, X, method)
        w = scaled_weight(check_weight(sample_weight, rows.n), rows.n, fitted.weight_exponent)  # in the units of `fit`
        targets = fitted.targets.read(y, rows, w, running.name, classes)
        rows.weight, rows.unit = times_factor(self._later_factor(targets), rows.codes, w, unit_of(w))
        return rows, targets

    def _later_factor(self, targets: Targets) -> np.ndarray | None:
        """The weight of each class of rows that come after `fit`."""
        return None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        raise NotImplementedError

    def _check_additive(self, method: str) -> None:
        """Whether weights of rows do not depend on other rows."""
        raise NotImplementedError

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any, arrival: Arrival) -> Self:
        self._checked()
        self._check_additive("partial_fit")

        def step(fitted: FittedModel | None) -> FittedModel:
            arrival.check_order(X, None if fitted is None else fitted.window)
            if fitted is None:
                return self._first_rows("partial_fit", X, y, classes, sample_weight, arrival)
            fitted.head.linear("partial_fit").check_sums("partial_fit")
            rows, targets = self._later_rows(fitted, "partial_fit", X, y, sample_weight, classes)
            return stream.arrived(fitted, rows, targets, arrival)

        return self._updated(step, X, y, sample_weight)

    def _first_rows(
        self, method: str, X: Any, y: Any, classes: Any, sample_weight: Any, arrival: Arrival
    ) -> FittedModel:
        """After the first call of `partial_fit`, or where rows that stay begin anew."""
        fitted = self._first_fit(X, y, classes, arrival.first_weight(X, sample_weight), {})
        update.statistics(fitted, method)
        fitted = replace(fitted, tested=arrival.test)
        if arrival.window is not None:
            rows, targets = self._later_rows(fitted, method, X, y, sample_weight, classes)
            return stream.windowed(fitted, method, rows, targets, arrival.window)
        if arrival.fading is None:
            return fitted
        oldest = int(fitted.stats["rows"]) - 1 if arrival.fading.by_row else 0
        return stream.begun_to_fade(fitted, method, arrival.fading, oldest)

    def _fitted_again(self, before: FittedModel, age: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fitted anew to rows that stay, of these ages, with the window and the rate there were."""
        fading = before.fading
        if fading is None:
            update.check_no_age(age)
            if before.window is None:
                return self.fit(X, y, sample_weight)
            check_window_order(X)
            anew = partial(self._first_rows, "forget", X, y, None, sample_weight, Arrival(window=before.window.size))
            return self._refitted(anew, X, y, sample_weight)
        if is_streamed(X):
            raise ValueError("Rows that have lost weight are given to forget as arrays, not as a source.")
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        ages, w = fading.ages(age, n, "forget"), check_weight(sample_weight, n)
        share = fading.factor**ages

        def faded() -> FittedModel:
            fitted = self._first_fit(X, y, None, share if w is None else share * w, {})
            return stream.begun_to_fade(fitted, "forget", fading, int(np.ceil(ages.max())))

        return self._refitted(faded, X, y, sample_weight)

    def forget(self, X, y=None, sample_weight=None, remaining=None, age=None):
        """Remove rows: afterwards the output layer is one that never saw them.

        What the features, the anchor rows and a metric from labels learnt from them stays; with `remaining` the whole
        network is fitted again on those rows instead, and X is not looked at. Rows that cannot have been in are
        refused, and nothing is changed. Leave-one-out results of single rows (`loo_predictions_`, what intervals are
        made of) go with them: `recalibrate` brings them back for rows that stay.

        Parameters
        ----------
        X, y, sample_weight
            The rows, with the targets and the weights they came with.
        remaining : (X, y) or (X, y, sample_weight) or a source with targets, optional
            All rows that stay, in the order they came. A window keeps the last of them, rows that fade go on fading.
        age : number or array-like of shape (n_samples,), optional
            Where rows lose weight with age, that of each of these rows, or of each that remains, and needed: how many
            calls with `decay`, or with `half_life` how many rows, came after it. Rows that were in before the first
            such call are all of one age. After a later call with neither, or with another rate, ages no longer say what
            rows weigh: only `remaining` is left, whose rows are taken to have faded at the last rate.

        Returns
        -------
        self
        """
        before = self._read()
        if remaining is not None:
            if before.grouped:
                raise ValueError(
                    "This model was fitted with groups, which 'remaining' does not bring: call fit(X, y, groups=...) "
                    "with the rows that stay."
                )
            if isinstance(remaining, (tuple, list)) and len(remaining) not in (2, 3):
                raise ValueError(
                    f"'remaining' must be (X, y), (X, y, sample_weight) or a source, but it has {len(remaining)} parts."
                )
            parts = remaining if isinstance(remaining, (tuple, list)) else (remaining,)
            return self._fitted_again(before, age, *parts)
        self._check_additive("forget")

        def step(fitted: FittedModel | None) -> FittedModel:
            assert fitted is not None
            update.exact_statistics(fitted, "forget")
            if fitted.window is not None:
                check_window_order(X)
            rows, targets = self._later_rows(fitted, "forget", X, y, sample_weight)
            update.aged(fitted, rows, age, "forget")
            return update.forgotten(fitted, rows, targets)

        return self._updated(step, X, y, sample_weight)

    def fork(self):
        """The same network with no rows in it, to be filled elsewhere by `partial_fit` and merged by `merge`."""
        new = sklearn.clone(self)
        new.fitted_ = update.forked(self._read())
        return new

    def merge(self, *others):
        """Add the rows of other models of the same network (see `fork`), in place.

        Returns
        -------
        self
        """
        self._read()
        self._check_additive("merge")
        theirs = []
        for number, other in enumerate(others, 1):
            if type(other) is not type(self) or other.fitted_ is None:
                raise ValueError(f"Model {number} to merge is not a fitted {type(self).__name__}.")
            if any(other is each for each in (self, *others[: number - 1])):
                raise ValueError(f"Model {number} to merge is there already, and its rows would count twice.")
            other._check_additive("merge")
            theirs.append(other.fitted_)
        return self._updated(lambda fitted: update.merged(fitted, theirs))

    def recalibrate(self, X, y=None, sample_weight=None, *, groups=None, age=None):
        """Leave-one-out results, probabilities and intervals for the model as it is now, from rows that are in it.

        `partial_fit`, `forget` and `merge` leave them as they were (`loo_is_stale_`).

        Parameters
        ----------
        X, y, sample_weight
            Rows that are in the model; at most 10,000 distinct ones are used.
        groups : array-like of shape (n_samples,), optional
            Which rows belong together, as in `fit`: all rows of a group that are in the model. A model that was fitted
            with groups needs them.
        age : number or array-like of shape (n_samples,), optional
            Of each row, where rows lose weight with age, which needs it: as in `forget`.

        Returns
        -------
        self
        """
        check_groups_again(self._read().grouped, groups)

        def step(fitted: FittedModel | None) -> FittedModel:
            assert fitted is not None
            update.statistics(fitted, "recalibrate")
            fitted.ready()
            rows, targets = self._later_rows(fitted, "recalibrate", X, y, sample_weight)
            update.aged(fitted, rows, age, "recalibrate")
            if is_streamed(X):
                check_no_groups(groups)
            give_groups(rows, read_groups(groups, rows.n), seed_of(self.random_state))
            return update.recalibrated(fitted, rows, targets, seed_of(self.random_state))

        return self._updated(step, X, y, sample_weight)
