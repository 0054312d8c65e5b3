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
from typing import Any

import numpy as np

from .._arrays import NUMPY, to_numpy
from .._base.warn import warn
from .._data.halves import judging_rows
from .._data.rows import Block, Rows
from .._data.targets import Seen, Targets
from .._engine.calibration import Calibration
from .._engine.fading import Fading
from .._engine.moments import Moments
from .._engine.running import RunningScore
from .._engine.scaling import Scaling
from .._engine.waiting import MOST_WAITING, Waiting, is_tame
from .._network.fit_output import score_output
from .._network.head import LinearHead
from .._network.layer import check_sums, updated_layer
from .._network.network import FeatureCache, Network
from .._network.output import Output, add_features, blurred, definite, features_of
from .._network.survey import rows_to_score
from .arrival import Arrival
from .fitted import FittedModel

FEW_ROWS = 32
"""Rows of one call that wait for the sums."""


def arrived(fitted: FittedModel, rows: Rows, targets: Targets, arrival: Arrival) -> FittedModel:
    """With these rows in the output layer, predicted first where that was asked for."""
    few = _few(fitted, rows, targets, arrival)
    if few is not None:
        return few
    if arrival.test is not None:
        fitted = replace(fitted, tested=tested(fitted, rows, targets, arrival.test))
    return added(fitted, rows, targets, layers=arrival.layers, fading=arrival.fading)


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
        head = _holding(head, moments)
    columns = targets.columns_of(fitted.targets)
    moments = moments.copy() if columns is None else moments.arranged(columns)
    if fading is not None:
        moments.fade(fading.kept(rows.n))
    moments.merge(_summed(fitted, head, network, rows, moments, fading))
    if fading is not None:
        moments.follow()
        head = _holding(head, moments)
        fading = fading.following(fitted.fading)
    new = _with_sums(fitted, head, moments, targets)
    return replace(new, network=network, approximate=fitted.approximate or layers, fading=fading or fitted.fading)


def _few(fitted: FittedModel, rows: Rows, targets: Targets, arrival: Arrival) -> FittedModel | None:
    """The same for a few rows in NumPy, which wait for the sums and for which the solution can follow; None where they
    are none of that kind."""
    head, fading, test = fitted.head.linear("partial_fit"), arrival.fading, arrival.test
    output, kept = head.output, 1.0 if fading is None else fading.kept(rows.n)
    if (
        rows.n > FEW_ROWS
        or not rows.in_memory
        or rows.space != NUMPY
        or targets is not fitted.targets
        or arrival.layers
    ):
        return None
    if (fading is not None and output.held is None) or not kept > 0 or not output.moments or not output.moments.count:
        return None
    block = rows.whole()
    with np.errstate(over="ignore", invalid="ignore"):
        F = head.features(fitted.network(block.X))
    if not is_tame(F, block.Z) or (fading is not None and not _keeps_scales(output, F)):
        return None
    score = fitted.tested
    if test is not None:
        head.ready()
        score = test if score is None else replace(score, half_life=test.half_life)
        seen = Seen(block.codes, block.Z, block.w)
        score = fitted.targets.tested(score, head.answers(F), seen, targets)
    share = None if fading is None else fading.weights(0, rows.n, rows.n)
    w = block.w if share is None else share if block.w is None else share * block.w
    waiting = (output.waiting or Waiting(output.moments)).joined(F, block.Z, w, kept)
    if arrival.current:
        output = output.with_row_by_row(waiting, head.hidden)
    elif waiting.count <= MOST_WAITING:
        output = replace(output, waiting=waiting, following=None, solved=False)
    else:
        output = replace(output, moments=waiting.total(), waiting=None, following=None, solved=False)
    fading = fading.following(fitted.fading) if fading is not None else fitted.fading
    return replace(fitted, head=replace(head, output=output), loo_is_stale=True, fading=fading, tested=score)


def _keeps_scales(output: Output, F: np.ndarray) -> bool:
    """Whether no feature without a scale gets one by these rows."""
    assert output.held is not None
    assert output.moments is not None
    still = output.held == 0
    return bool(np.all(F[:, still] == output.moments.shift_a[still]))


def _holding(head: LinearHead, moments: Moments) -> LinearHead:
    """With the scales of its features held."""
    return replace(head, output=head.output.holding(moments, head.hidden))


def begun_to_fade(fitted: FittedModel, fading: Fading) -> FittedModel:
    """After a first fit whose rows had weights by age."""
    head, moments = fitted.head.linear("partial_fit"), statistics(fitted, "partial_fit")
    return replace(fitted, head=_holding(head, moments), fading=fading)


def tested(fitted: FittedModel, rows: Rows, targets: Targets, asked: RunningScore) -> RunningScore | None:
    """The running score after these rows, which are not in yet."""
    before = asked if fitted.tested is None else replace(fitted.tested, half_life=asked.half_life)
    head, network = fitted.head.linear("partial_fit"), fitted.network
    if not statistics(fitted, "partial_fit").count:
        return fitted.tested  # nothing to predict with
    fitted.ready()
    outputs, columns = [], []
    with np.errstate(over="ignore", invalid="ignore"):  # refused in one sentence instead
        for block in rows.blocks("testing the rows", fitted.widest):
            outputs.append(to_numpy(head.outputs(network(block.X))))
            columns.append([None if part is None else to_numpy(part) for part in (block.codes, block.Z, block.w)])
    seen = Seen(*(None if parts[0] is None else np.concatenate(parts) for parts in zip(*columns, strict=True)))
    return fitted.targets.tested(before, np.concatenate(outputs), seen, targets)


def aged(fitted: FittedModel, rows: Rows, age: Any) -> None:
    """Give rows that are in the weight they still have."""
    if fitted.fading is None:
        if age is not None:
            raise ValueError("No row of this model has lost weight: leave 'age' out.")
        return
    share = fitted.fading.at_age(age, rows.n)
    if not rows.in_memory:
        raise ValueError("Rows that have lost weight are forgotten from arrays, not from a source.")
    rows.weight = share if rows.weight is None else share * rows.weight


def forgotten(fitted: FittedModel, rows: Rows, targets: Targets) -> FittedModel:
    """Without these rows."""
    head = fitted.head.linear("forget")
    if targets is not fitted.targets:
        raise ValueError(
            "Cannot forget these rows: y holds a class that was never in. Give rows that were added, with the "
            "targets they had."
        )
    moments = exact_statistics(fitted, "forget").copy()
    moments.subtract(_summed(fitted, head, fitted.network, rows, moments))
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
    new = _with_sums(fitted, head, moments, targets)
    left = new.head.linear("forget")
    return replace(new, head=replace(left, output=left.output.without_rows()), loo_predictions=None)


def forked(fitted: FittedModel) -> FittedModel:
    """The same network with no rows in it."""
    head, empty = fitted.head.linear("fork"), statistics(fitted, "fork").like()
    calibration = head.calibrated(fitted.targets)
    output = replace(head.output.without_rows(), moments=empty, waiting=None, held=None)
    head = LinearHead(head.hidden, output, calibration)
    return replace(fitted, head=head, loo_score=None, loo_predictions=None, loo_is_stale=True, fading=None, tested=None)


def merged(fitted: FittedModel | None, others: list[FittedModel]) -> FittedModel:
    """With the rows of other models of the same network."""
    assert fitted is not None
    head, moments, targets = fitted.head.linear("merge"), exact_statistics(fitted, "merge"), fitted.targets
    if any(each.fading is not None for each in (fitted, *others)):
        raise ValueError(
            "Models whose rows lose weight with age cannot be merged, because ages count the rows of one model alone: "
            "merge first, and let rows fade afterwards."
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
    columns = targets.columns_of(fitted.targets)
    moments = moments.copy() if columns is None else moments.arranged(columns)
    for other in others:
        theirs, columns = exact_statistics(other, "merge"), targets.columns_of(other.targets)
        moments.merge(theirs if columns is None else theirs.arranged(columns))
    return _with_sums(fitted, head, moments, targets)


def recalibrated(fitted: FittedModel, rows: Rows, targets: Targets, seed: int) -> FittedModel:
    """With leave-one-out results for what it is now, from rows that are in it."""
    if targets is not fitted.targets:
        raise ValueError("y holds a class the model does not know: recalibrate reads rows that are in the model.")
    head, scored = fitted.head.linear("recalibrate"), rows_to_score(rows, seed)
    if fitted.halves is not None:
        scored = judging_rows(scored, fitted.halves)
        if not scored.n:
            raise ValueError(
                "All these rows have shaped the network with their labels, so leave-one-out says nothing of them: give "
                "more rows that are in the model."
            )
    with np.errstate(over="ignore", invalid="ignore"):  # a row that is not in the model has any leverage
        loo = score_output(head, features_of(fitted.network, head.hidden), scored)
    output = replace(head.output, loo=loo, scored_rows=scored.numbers)
    return replace(fitted, head=LinearHead(head.hidden, output)).judged()


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


def _summed(
    fitted: FittedModel, head: LinearHead, network: Network, rows: Rows, like: Moments, fading: Fading | None = None
) -> Moments:
    """The sums of some rows, about the shift of those that are kept."""
    add = partial(add_features, FeatureCache(network), head.hidden)
    if fading is not None and fading.by_row:
        add = partial(_add_faded, add, fading, rows)
    with np.errstate(over="ignore", invalid="ignore"):  # refused in one sentence instead
        sums = rows.total(partial(copy.copy, like.like()), add, "adding the rows", fitted.widest)
    check_sums(sums.is_finite())
    return sums


def _add_faded(
    add: Callable[[Moments, Block], None], fading: Fading, rows: Rows, moments: Moments, block: Block
) -> None:
    """Add a block whose rows came one after another."""
    share = fading.weights(block.start, block.start + int(block.X.shape[0]), rows.n)
    w = rows.space.asarray(share, "float64")
    add(moments, block._replace(w=w if block.w is None else w * block.w))


def _with_sums(fitted: FittedModel, head: LinearHead, moments: Moments, targets: Targets) -> FittedModel:
    """With new sums, and new classes if there are any: a class that came late has an output of its own."""
    check_sums(moments.is_finite())
    calibration = head.calibration
    if targets is not fitted.targets:  # a map knows the old classes only
        before = head.calibrated(fitted.targets)
        calibration = None if before is None else Calibration(before.temperature)
    output = replace(head.output, moments=moments, waiting=None, following=None, solved=False)
    head = LinearHead(head.hidden, output, calibration)
    return replace(fitted, head=head, targets=targets, loo_is_stale=True)


def network_hash(fitted: FittedModel, method: str) -> str:
    """SHA-256 of everything that makes features and decides how they are summed."""
    statistics(fitted, method)
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
