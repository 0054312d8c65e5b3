"""Rows that come and go after `fit`: partial_fit, forget, fork, merge, recalibrate.

The output layer is a function of sums over rows (`Moments`), so adding, removing and merging rows is exact: afterwards
it is the one that a single fit of this network's output layer on the rows now in it would give. Solving is put off
until somebody predicts.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._arrays import to_numpy
from .._arrays.threads import sharing
from .._base.scalars import seed_of
from .._base.warn import warn
from .._data.rows import Rows
from .._data.targets import one_kind, plain_labels
from .._engine.moments import Moments
from .._network.calibration import Calibration
from .._network.head import EstimatorHead, LinearHead, Output
from .._network.layer import Layer, check_sums, updated_layer
from .._network.network import Network, Seen
from .._network.output import add_features, blurred, definite, features_of, score_output, solve_output
from .._network.survey import rows_to_score
from .whole import whole_update


class Wider(NamedTuple):
    """More classes than before, and where their outputs come from: an old column, or None for a new class."""

    classes: np.ndarray
    columns: list[int | None]


def places(known: np.ndarray, classes: np.ndarray) -> list[int | None]:
    """For each of `classes` its place among the known ones; None where it is not."""
    where = {label: k for k, label in enumerate(known.tolist())}
    return [where.get(label) for label in classes.tolist()]


class UpdateMixin:
    """What the classifier and the regressor share. They give `_new_rows`, which reads what a method got."""

    head_: Any

    weight_exponent_ = 0
    """`fit` divided weights of absurd size by two to this power; those of later rows are divided, too."""

    def _partial_fit(self: Any, X: Any, y: Any, classes: Any, sample_weight: Any, update: str) -> None:
        self._check_params()
        if update not in ("head", "all"):
            raise ValueError(f"'update' must be 'head' or 'all'. Got {update!r} instead.")
        self._need_additive_weights("partial_fit")
        if not hasattr(self, "head_"):
            self._first_fit(X, y, classes, sample_weight)
            self._need_statistics("partial_fit")
            return
        head = self._need_statistics("partial_fit")
        rows, wider = self._new_rows("partial_fit", X, y, sample_weight, classes)
        network, approximate = self.network_, self.approximate_
        if update == "all":
            with np.errstate(over="ignore", invalid="ignore"):  # refused in one sentence instead
                network, approximate = _updated_network(network, rows), True
        moments = head.output.moments.copy() if wider is None else head.output.moments.arranged(wider.columns)
        moments.merge(self._summed(network, head, rows, moments))
        self._take_over(moments, wider)
        self.network_, self.layers_, self.approximate_ = network, network.layers, approximate

    @whole_update
    def forget(self: Any, X, y=None, sample_weight=None, remaining=None):
        """Remove rows: afterwards the output layer is one that never saw them.

        What the features and the anchor rows learnt from them stays; with `remaining` the whole network is fitted
        again on those rows instead, and X is not looked at. Rows that cannot have been in are refused, and nothing is
        changed. Leave-one-out results of single rows (`loo_predictions_`, what intervals are made of) go with them:
        `recalibrate` brings them back for rows that stay.

        Parameters
        ----------
        X, y, sample_weight
            The rows, with the targets and the weights they came with.
        remaining : (X, y) or (X, y, sample_weight) or a source with targets, optional
            All rows that stay.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if remaining is not None:
            if isinstance(remaining, (tuple, list)) and len(remaining) not in (2, 3):
                raise ValueError(
                    f"'remaining' must be (X, y), (X, y, sample_weight) or a source, but it has {len(remaining)} parts."
                )
            return self.fit(*remaining) if isinstance(remaining, (tuple, list)) else self.fit(remaining)
        self._need_additive_weights("forget")
        head = self._need_statistics("forget")
        self._need_exact("forget")
        rows, wider = self._new_rows("forget", X, y, sample_weight)
        if wider is not None:
            raise ValueError(
                "Cannot forget these rows: y holds a class that was never in. Give rows that were added, with the "
                "targets they had."
            )
        moments = head.output.moments.copy()
        moments.subtract(self._summed(self.network_, head, rows, moments))
        if moments.count:
            mass = to_numpy(moments.mean_b) * moments.weight
            if hasattr(self, "classes_") and np.any(mass < -1e-6 * max(1.0, moments.weight)):
                short = self.classes_.tolist()[int(np.argmin(mass))]
                raise ValueError(f"Cannot forget these rows: there are not so many of class {short!r} in the model.")
            if not definite(head, moments):
                raise ValueError(
                    "Cannot forget these rows: without them the sums kept would not be those of any rows, so they were "
                    "never added. Give rows that were added, with the values and the weights they had."
                )
            if blurred(head, moments):
                warn(
                    "What was forgotten was so large beside what stays that rounding is left of it in the sums: "
                    "predictions may hold to few digits only. For exact ones fit again on the rows that stay: "
                    "forget(X, y, remaining=(X_rest, y_rest))."
                )
        if hasattr(self, "classes_"):
            head.calibrated(self.multilabel_)  # a few numbers; what it is found from goes
        self._take_over(moments, None)
        self.head_.output = _without_rows(self.head_.output)
        if hasattr(self, "loo_predictions_"):
            del self.loo_predictions_
        return self

    def fork(self: Any):
        """The same network with no rows in it, to be filled elsewhere by `partial_fit` and merged by `merge`."""
        check_is_fitted(self)
        head = self._need_statistics("fork")
        new = clone(self)
        for name, value in vars(self).items():
            if (name.endswith("_") and not name.startswith("loo_")) or name == "_n_features_out":
                setattr(new, name, value)
        empty = head.output.moments.like()
        output = _without_rows(dataclasses.replace(head.output, moments=empty, solved=False))
        calibration = head.calibrated(self.multilabel_) if hasattr(self, "classes_") else None
        new.head_ = LinearHead(head.hidden, output, calibration)
        new.loo_is_stale_ = True
        return new

    @whole_update
    def merge(self: Any, *others):
        """Add the rows of other models of the same network (see `fork`), in place.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        head = self._need_statistics("merge")
        self._need_exact("merge")
        self._need_additive_weights("merge")
        for k, other in enumerate(others):
            if type(other) is not type(self) or not hasattr(other, "head_"):
                raise ValueError(f"Model {k + 1} to merge is not a fitted {type(self).__name__}.")
            other._need_statistics("merge")
            other._need_exact("merge")
            other._need_additive_weights("merge")
            if other.weight_exponent_ != self.weight_exponent_:
                raise ValueError(f"Model {k + 1} to merge was fitted with weights of another size: bring them to one.")
            if other.n_outputs != self.n_outputs:
                raise ValueError(f"Model {k + 1} to merge has {other.n_outputs} outputs, this one {self.n_outputs}.")
            if other.network_hash_ != self.network_hash_:
                raise ValueError(
                    f"Model {k + 1} to merge has another network: only models that share one can be merged. Fit one, "
                    "give every site its fork(), and merge the forks."
                )
        moments, wider = head.output.moments.copy(), None
        if hasattr(self, "classes_"):
            wider = self._wider(np.concatenate([other.classes_ for other in others])) if others else None
            moments = moments if wider is None else moments.arranged(wider.columns)
        for other in others:
            theirs = other.head_.output.moments
            if hasattr(self, "classes_"):
                theirs = theirs.arranged(places(other.classes_, self.classes_ if wider is None else wider.classes))
            moments.merge(theirs)
        self._take_over(moments, wider)
        return self

    @whole_update
    def recalibrate(self: Any, X, y=None, sample_weight=None):
        """Leave-one-out results, probabilities and intervals for the model as it is now, from rows that are in it.

        `partial_fit`, `forget` and `merge` leave them as they were (`loo_is_stale_`).

        Parameters
        ----------
        X, y, sample_weight
            Rows that are in the model; at most 10,000 distinct ones are used.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        head = self._need_statistics("recalibrate")
        self._current_head()
        rows, wider = self._new_rows("recalibrate", X, y, sample_weight)
        if wider is not None:
            raise ValueError("y holds a class the model does not know: recalibrate reads rows that are in the model.")
        scored = rows_to_score(rows, seed_of(self.random_state))
        with np.errstate(over="ignore", invalid="ignore"):  # a row that is not in the model has any leverage
            loo = score_output(head, features_of(self.network_, head.hidden), scored, np.zeros(scored.n, bool))
        output = dataclasses.replace(head.output, loo=loo, scored_rows=scored.numbers)
        self.head_ = LinearHead(head.hidden, output)
        self._set_loo(loo)
        return self

    @property
    def network_hash_(self: Any) -> str:
        """Equal for models of the same network: features, neurons, ridge, dtype. Output weights do not count."""
        check_is_fitted(self)
        head = self._need_statistics("network_hash_")
        return network_hash(self.network_, head)

    # ------------------------------------------------------------------------------------------------- inside

    def _summed(self: Any, network: Network, head: LinearHead, rows: Rows, like: Moments) -> Moments:
        """The sums of some rows, about the shift of those that are kept."""
        add = partial(add_features, Seen(network), head.hidden)
        with np.errstate(over="ignore", invalid="ignore"):  # refused in one sentence instead
            sums = rows.total(partial(copy.copy, like.like()), add, "adding the rows", self._widest)
        check_sums(sums.is_finite())
        return sums

    def _current_head(self: Any) -> Any:
        """The head, its output layer solved."""
        if not hasattr(self, "head_"):  # asked first: scikit-learn's check takes longer than one row's prediction
            check_is_fitted(self)
        head = self.head_
        if isinstance(head, LinearHead) and not head.output.solved:
            if head.output.moments is None or not head.output.moments.count:
                raise ValueError(
                    f"This {type(self).__name__} has no rows in it: add some by partial_fit, or merge a model that has "
                    "some."
                )
            with sharing():
                solve_output(head, self.network_.dtype)
        return head

    def _wider(self: Any, labels: Any) -> Wider | None:
        """The classes with these labels among them; None where all are known."""
        labels = np.unique(np.asarray(plain_labels(labels)))
        known = self.classes_
        classes = one_kind(known, labels)
        return None if len(classes) == len(known) else Wider(classes, places(known, classes))

    def _take_over(self: Any, moments: Moments, wider: Wider | None) -> None:
        """New sums, and new classes if there are any: a class that came late has an output of its own."""
        check_sums(moments.is_finite())
        head, calibration = self.head_, self.head_.calibration
        if wider is not None:  # a map knows the old classes only
            calibration = Calibration(head.calibrated(self.multilabel_).temperature)
            self.classes_ = wider.classes
        self.head_ = LinearHead(
            head.hidden, dataclasses.replace(head.output, moments=moments, solved=False), calibration
        )
        self.loo_is_stale_ = True

    def _need_statistics(self: Any, method: str) -> LinearHead:
        if isinstance(self.head_, EstimatorHead):
            raise ValueError(
                f"{method} needs an output layer that is a sum over rows: use head='shln' or head='ridge'."
            )
        if self.head_.output.moments is None:
            raise ValueError(
                f"{method} needs the sums of the output layer, which this model was fitted or saved without: use "
                "keep_statistics=True in fit and statistics=True in save."
            )
        return self.head_

    def _need_exact(self: Any, method: str) -> None:
        if self.approximate_:
            raise ValueError(
                f"{method} is refused after partial_fit(update='all'): earlier rows were summed under earlier "
                "features, so they can be neither removed nor merged exactly. Fit again, or use update='head'."
            )

    def _need_additive_weights(self: Any, method: str) -> None:
        if isinstance(getattr(self, "class_weight", None), str):
            raise ValueError(
                f"{method} cannot be exact with class_weight='balanced', which depends on all rows: give the weight of "
                "each class as a dict, or of each row as sample_weight."
            )
        if getattr(self, "loss", "squared") == "robust":
            raise ValueError(
                f"{method} cannot be exact with loss='robust', where weights depend on all rows: fit with "
                "loss='squared' and sample_weight=model.row_weights_ to go on."
            )


def _without_rows(output: Any) -> Output:
    """An output layer that is not solved, without what is known of single rows and what was solved with them."""
    coef, intercept = 0.0 * output.coef, 0.0 * output.intercept  # of their shapes
    return dataclasses.replace(output, coef=coef, intercept=intercept, loo=None, scored_rows=None)


def network_hash(network: Network, head: LinearHead) -> str:
    """SHA-256 of everything that makes features and decides how they are summed."""
    digest = hashlib.sha256()

    def put(value: Any) -> None:
        if value is None or isinstance(value, (str, bool, float, int)):
            digest.update(repr(value).encode())
        else:
            array = np.ascontiguousarray(to_numpy(value))
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(array.tobytes())

    def put_scaling(scaling: Any) -> None:
        put(None if scaling is None else type(scaling).__name__)
        for value in () if scaling is None else vars(scaling).values():
            put(value)

    put(f"{network.dtype}, skip {network.skip}")
    put(network.gauge)
    for each in (network, *network.others):
        put_scaling(each.scaling)
        for layer in each.layers:
            put(layer.activation)
            put(layer.weights)
    if head.hidden is not None:
        put_scaling(head.hidden.scaling)
        for value in (head.hidden.weights, head.hidden.bias, head.hidden.activation, head.hidden.direct):
            put(value)
    put(float(head.output.ridge))
    return digest.hexdigest()


def _updated_network(network: Network, rows: Rows) -> Network:
    """The paper's incremental PILAE: every layer's decoder follows the new rows, and its tied encoder with it."""
    if network.others:
        raise ValueError("update='all' follows one stack of layers: fit with branches=1, or use update='head'.")
    layers: list[Layer] = []
    for layer in network.layers:
        below = dataclasses.replace(network, layers=list(layers), skip=False)
        layers.append(updated_layer(layer, rows, Seen(below)))
    return dataclasses.replace(network, layers=layers)
