"""Rows that come and go after `fit`, each as a function from one fitted model to the next.

The output layer is a function of sums over rows (`Moments`), so adding, removing and merging rows is exact: afterwards
it is the one that a single fit of this network's output layer on the rows now in it would give. Solving is put off
until somebody predicts.
"""

import copy
import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from .._arrays import to_numpy
from .._base.warn import warn
from .._data.halves import judging_rows
from .._data.rows import Block, Rows, counting
from .._data.targets import Targets
from .._engine.calibration import Calibration
from .._engine.class_sums import ClassSums, check_room
from .._engine.fading import Fading, now_fading
from .._engine.moments import Moments
from .._engine.scaling import Extent, Scaling
from .._network.averaged import mean_of
from .._network.fit_output import score_output
from .._network.head import LinearHead
from .._network.layer import check_sums, updated_layer
from .._network.network import FeatureCache, Network
from .._network.output import Sums, add_features, blurred, definite, features_of
from .._network.survey import rows_to_score
from .fitted import FittedModel
from .members import joined, members, network_by_network
from .window import kept


@network_by_network
def added(
    fitted: FittedModel, rows: Rows, targets: Targets, *, layers: bool = False, fading: Fading | None = None
) -> FittedModel:
    """With these rows in the output layer, and where `layers` says so in the layers too, which is approximate. With
    `fading` those that are in grow older first."""
    network = fitted.network
    if layers:
        with np.errstate(over="ignore", invalid="ignore"):  # refused in one sentence instead
            network = _updated_network(network, rows)
    head, moments = fitted.head.linear("partial_fit"), statistics(fitted, "partial_fit")
    if fading is not None and moments.count:
        head = holding(head, moments)
    check_room_for(head, targets)
    sums = arranged(head.output.by_class or moments, targets.columns_of(fitted.targets))
    if fading is not None:
        sums.fade(fading.kept(rows.n))
    arrived = summed(fitted, head, network, rows, sums, fading)
    join(sums, arrived.sums)
    if fading is not None:
        sums.follow()
    new = with_sums(fitted, head, sums, targets)
    if fading is not None:
        head = holding(new.head.linear("partial_fit"), statistics(new, "partial_fit"))
        new = replace(new, head=head)
    fading = now_fading(fitted.fading, fading, rows.n)
    new = seen(new, arrived.extent)
    return replace(new, network=network, approximate=fitted.approximate or layers, fading=fading)


def seen(fitted: FittedModel, extent: Extent) -> FittedModel:
    """With the ranges of later rows among those that were seen."""
    return replace(fitted, bounds=fitted.bounds and fitted.bounds.joined(extent.low, extent.high))


def arranged(sums: Sums, columns: list[int | None] | None) -> Sums:
    """A copy, with columns for classes that came."""
    return sums.copy() if columns is None else sums.arranged(columns)


def check_room_for(head: LinearHead, targets: Targets) -> None:
    """Whether sums by class of these targets, where such are kept, may be: classes come later, too."""
    if head.output.by_class is not None:
        check_room(targets.n_classes, int(head.output.coef.shape[0]))


def join(sums: Sums, more: Sums) -> None:
    """Add sums of the same kind; `with_sums` refuses what overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums.merge(more)  # type: ignore[arg-type]


def holding(head: LinearHead, moments: Moments) -> LinearHead:
    """With the scales of its features held."""
    return replace(head, output=head.output.holding(moments, head.hidden))


def check_no_age(age: Any) -> None:
    """Of a model whose rows have none."""
    if age is not None:
        raise ValueError("No row of this model has lost weight: leave 'age' out.")


def aged(fitted: FittedModel, rows: Rows, age: Any, method: str) -> None:
    """Give rows that are in the weight they still have."""
    if fitted.fading is None:
        check_no_age(age)
        return
    share = fitted.fading.at_age(age, rows.n, method)
    if not rows.in_memory:
        raise ValueError(f"Rows that have lost weight are given to {method} as arrays, not as a source.")
    rows.weight = share if rows.weight is None else share * rows.weight
    rows.unit = share if rows.unit is None else share * rows.unit


@network_by_network
def forgotten(fitted: FittedModel, rows: Rows, targets: Targets) -> FittedModel:
    """Without these rows."""
    head, window = fitted.head.linear("forget"), fitted.window
    if targets is not fitted.targets:
        raise ValueError(
            "Cannot forget these rows: y holds a class that was never in. Give rows that were added, with the "
            "targets they had."
        )
    sums = (head.output.by_class or exact_statistics(fitted, "forget")).copy()
    if window is not None:
        gone = kept(rows, rows.n)
        assert gone is not None
        window = window.without(gone)
    sums.subtract(summed(fitted, head, fitted.network, rows, sums).sums)
    moments = all_of(sums)
    if moments.count:
        targets.check_mass(to_numpy(moments.mean_b) * moments.weight, moments.weight)
        held = head.output.held
        if not definite(moments, head.hidden, held):
            raise ValueError(
                "Cannot forget these rows: without them the sums kept would not be those of any rows, so they were "
                "never added. Give rows that were added, with the values and the weights they had."
            )
        if blurred(moments, head.hidden, head.output.ridge, held):
            warn(
                "What was forgotten was so large beside what stays that rounding is left of it in the sums: "
                "predictions may hold to few digits only. For exact ones fit again on the rows that stay: "
                "forget(X, y, remaining=(X_rest, y_rest))."
            )
    head.calibrated(targets)  # a few numbers; what it is found from goes
    new = with_sums(fitted, head, sums, targets)
    left = new.head.linear("forget")
    left = replace(left, output=left.output.without_rows())
    return replace(new, head=left, loo_predictions=None, window=window)


@network_by_network
def forked(fitted: FittedModel) -> FittedModel:
    """The same network with no rows in it."""
    head, empty = fitted.head.linear("fork"), statistics(fitted, "fork").like()
    calibration = head.calibrated(fitted.targets)
    by_class = None if head.output.by_class is None else head.output.by_class.like()
    output = replace(head.output.without_rows(), moments=empty, by_class=by_class, waiting=None, held=None)
    head = LinearHead(head.hidden, output, calibration)
    return replace(
        fitted,
        head=head,
        loo_score=None,
        loo_predictions=None,
        loo_is_stale=True,
        fading=None,
        window=None,
        tested=None,
    )


def merged(fitted: FittedModel | None, others: list[FittedModel]) -> FittedModel:
    """With the rows of other models of the same network."""
    assert fitted is not None
    exact_statistics(fitted, "merge")
    targets, bounds = fitted.targets, fitted.bounds
    if any(each.fading is not None for each in (fitted, *others)):
        raise ValueError(
            "Models whose rows lose weight with age cannot be merged, because ages count the rows of one model alone: "
            "merge first, and let rows fade afterwards."
        )
    if any(each.window is not None for each in (fitted, *others)):
        raise ValueError(
            "Models of the last rows cannot be merged: the rows of which would leave first? Merge their rows."
        )
    own_hash = network_hash(fitted, "merge") if others else ""
    for number, other in enumerate(others, 1):
        exact_statistics(other, "merge")
        if other.weight_exponent != fitted.weight_exponent:
            raise ValueError(f"Model {number} to merge was fitted with weights of another size: bring them to one.")
        targets = targets.joined(other.targets, number)
        if network_hash(other, "merge") != own_hash:
            raise ValueError(
                f"Model {number} to merge has another network: only models that share one can be merged. Fit one, "
                "give every site its fork(), and merge the forks."
            )
        if bounds is not None:
            far = other.bounds
            bounds = None if far is None else bounds.joined(far.low, far.high, far.spread)
    theirs = [members(other) for other in others]
    each = [_merged(one, [models[k] for models in theirs], targets) for k, one in enumerate(members(fitted))]
    return replace(joined(each), bounds=bounds)


def _merged(fitted: FittedModel, others: list[FittedModel], targets: Targets) -> FittedModel:
    """The sums of models of one network together."""
    head, moments = fitted.head.linear("merge"), exact_statistics(fitted, "merge")
    balanced = head.output.by_class
    check_room_for(head, targets)
    sums = arranged(balanced or moments, targets.columns_of(fitted.targets))
    for number, other in enumerate(others, 1):
        theirs = other.head.linear("merge").output.by_class
        if (theirs is None) != (balanced is None):
            raise ValueError(f"Model {number} to merge keeps other sums: fit all with the same keep_statistics.")
        more = arranged(theirs or exact_statistics(other, "merge"), targets.columns_of(other.targets))
        join(sums, more)
    return with_sums(fitted, head, sums, targets)


def recalibrated(fitted: FittedModel, rows: Rows, targets: Targets, seed: int) -> FittedModel:
    """With leave-one-out results for what it is now, from rows that are in it."""
    if targets is not fitted.targets:
        raise ValueError("y holds a class the model does not know: recalibrate reads rows that are in the model.")
    scored = rows_to_score(rows, seed)
    if fitted.halves is not None:
        scored = judging_rows(scored, fitted.halves)
        if not scored.n:
            raise ValueError(
                "All these rows have shaped the network with their labels, so leave-one-out says nothing of them: give "
                "more rows that are in the model."
            )
    models = members(fitted)
    heads = [model.head.linear("recalibrate") for model in models]
    with np.errstate(over="ignore", invalid="ignore"):  # a row that is not in the model has any leverage
        found = [
            score_output(head, features_of(model.network, head.hidden), scored)
            for head, model in zip(heads, models, strict=True)
        ]
    loo, first = mean_of(found), heads[0]
    output = replace(first.output, loo=loo, scored_rows=scored.numbers)
    models[0] = replace(models[0], head=LinearHead(first.hidden, output))
    return replace(joined(models), targets=targets.smeared(loo)).judged(scored)


# ------------------------------------------------------------------------------------------------------- inside


def statistics(fitted: FittedModel, method: str) -> Moments:
    """The sums of the output layer, or the sentence that says why there are none."""
    return fitted.head.linear(method).statistics(method)


def exact_statistics(fitted: FittedModel, method: str) -> Moments:
    """The same, of one network."""
    moments = statistics(fitted, method)
    if fitted.approximate:
        raise ValueError(
            f"{method} is refused after partial_fit(update='all'): earlier rows were summed under earlier "
            "features, so they can be neither removed nor merged exactly. Fit again, or use update='head'."
        )
    return moments


class Arrived:
    """What one pass over some rows finds."""

    def __init__(self, like: Sums, columns: int) -> None:
        self.sums: Any = copy.copy(like)
        """Of the kind of those that are kept, about their shift."""
        self.extent = Extent(columns)

    def merge(self, other: Self) -> None:
        self.sums.merge(other.sums)
        self.extent.merge(other.extent)


def summed(
    fitted: FittedModel, head: LinearHead, network: Network, rows: Rows, like: Sums, fading: Fading | None = None
) -> Arrived:
    """The sums of some rows, and how far they reach."""
    add = partial(add_features, FeatureCache(network), head.hidden)
    if fading is not None and fading.by_row:
        add = partial(_add_faded, add, fading, rows)
    with np.errstate(over="ignore", invalid="ignore"):  # refused in one sentence instead
        arrived = rows.total(
            partial(Arrived, like.like(), rows.d), partial(_arrive, add), "adding the rows", fitted.widest
        )
    check_sums(arrived.sums.is_finite())
    return arrived


def _arrive(add: Callable[[Sums, Block], None], arrived: Arrived, block: Block) -> None:
    add(arrived.sums, block)
    arrived.extent.add(counting(block))


def _add_faded(add: Callable[[Sums, Block], None], fading: Fading, rows: Rows, moments: Sums, block: Block) -> None:
    """Add a block whose rows came one after another."""
    share = fading.weights(block.start, block.start + int(block.X.shape[0]), rows.n)
    w = rows.space.asarray(share, "float64")
    add(moments, block._replace(w=w if block.w is None else w * block.w))


def all_of(sums: Sums) -> Moments:
    """The sums of all rows."""
    return sums if isinstance(sums, Moments) else sums.balanced()


@network_by_network
def with_class_sums(fitted: FittedModel, rows: Rows, factor: np.ndarray) -> FittedModel:
    """With the sums of the rows it was fitted to by class; their weights hold the `factor` of their class."""
    head, moments = fitted.head.linear("fit"), statistics(fitted, "fit")
    check_room(len(factor), int(moments.aa.shape[0]))
    empty = ClassSums.of(len(factor), moments.space, moments.product)
    sums = summed(fitted, head, fitted.network, rows, empty).sums
    for part, weight in zip(sums.parts, factor, strict=True):
        if part.count:
            part.fade(1.0 / float(weight))
    return replace(fitted, head=replace(head, output=replace(head.output, by_class=sums)))


def with_sums(fitted: FittedModel, head: LinearHead, sums: Sums, targets: Targets) -> FittedModel:
    """With new sums, and new classes if there are any: a class that came late has an output of its own."""
    moments = all_of(sums)
    check_sums(moments.is_finite())
    calibration = head.calibration
    if targets is not fitted.targets:  # a map knows the old classes only
        before = head.calibrated(fitted.targets)
        calibration = None if before is None else Calibration(before.temperature)
    by_class = None if isinstance(sums, Moments) else sums
    output = replace(head.output, moments=moments, by_class=by_class, waiting=None, following=None, solved=False)
    head = LinearHead(head.hidden, output, calibration)
    return replace(fitted, head=head, targets=targets, loo_is_stale=True)


def network_hash(fitted: FittedModel, method: str) -> str:
    """SHA-256 of everything that makes features and decides how they are summed."""
    statistics(fitted, method)
    if len(models := members(fitted)) > 1:
        return hashlib.sha256("".join(network_hash(model, method) for model in models).encode()).hexdigest()
    network, head = fitted.network, fitted.head.linear(method)
    digest = hashlib.sha256()

    def put(value: Any) -> None:
        if value is None or isinstance(value, (str, bool, float, int)):
            digest.update(repr(value).encode())
        else:
            array = np.ascontiguousarray(to_numpy(value))
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(array.tobytes())

    def put_scaling(scaling: Scaling | None) -> None:
        put(None if scaling is None else type(scaling).__name__)
        for value in () if scaling is None else vars(scaling).values():
            put(value)

    put(f"{network.dtype}, skip {network.skip}")
    put(network.gauge)
    columns = fitted.columns
    if not columns.are_plain and columns.intake is not None:
        for value in (columns.intake.fill, columns.intake.flagged):
            put(value)
        for categories in columns.intake.categories:
            for value in vars(categories).values():
                put(value)
    for column in () if columns.table is None else columns.table.columns:
        put(type(column).__name__)
        for name, value in vars(column).items():
            put(value if name == "directions" else str(value.tolist() if isinstance(value, np.ndarray) else value))
    for each in (network, *network.others):
        put_scaling(each.scaling)
        for layer in each.layers:
            put(layer.activation)
            put(layer.weights)
    if head.hidden is not None:
        put_scaling(head.hidden.scaling)
        for name, value in vars(head.hidden).items():
            if name != "scaling":
                put(value)
    put(float(head.output.ridge))
    curve = getattr(fitted.targets, "curve", None)
    for value in () if curve is None else (curve.middle, curve.spread):
        put(value)
    return digest.hexdigest()


def _updated_network(network: Network, rows: Rows) -> Network:
    """The paper's incremental PILAE: every layer's decoder follows the new rows, and its tied encoder with it."""
    if network.others:
        raise ValueError("update='all' follows one stack of layers: fit with branches=1, or use update='head'.")
    layers: list = []
    for layer in network.layers:
        below = replace(network, layers=list(layers), skip=False)
        layers.append(updated_layer(layer, rows, FeatureCache(below)))
    return replace(network, layers=layers)
