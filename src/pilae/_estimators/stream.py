"""Rows of a stream on their way into a model: predicted first, a few at a time, through a window."""

import copy
from dataclasses import replace

import numpy as np

from .._arrays import NUMPY, Array, to_numpy
from .._data.rows import Column, Rows
from .._data.targets import Seen, Targets
from .._engine.fading import Fading, now_fading
from .._engine.running import RunningScore
from .._engine.waiting import MOST_WAITING, Waiting, is_tame
from .._network.output import Output
from .arrival import Arrival
from .fitted import FittedModel
from .members import joined, members, network_by_network
from .update import added, holding, join, seen, statistics, summed, with_sums
from .window import LIGHT, Kept, Window, as_rows, kept

FEW_ROWS = 32
"""Rows of one call that wait for the sums."""


def arrived(fitted: FittedModel, rows: Rows, targets: Targets, arrival: Arrival) -> FittedModel:
    """With these rows in the output layer, predicted first where that was asked for."""
    if len(models := members(fitted)) > 1:
        score = fitted.tested if arrival.test is None else tested(fitted, rows, targets, arrival.test)
        quiet = arrival._replace(test=None)
        return replace(joined(_anew_together([arrived(each, rows, targets, quiet) for each in models])), tested=score)
    if arrival.window is not None or fitted.window is not None:
        return _slid(fitted, rows, targets, arrival)
    few = _few(fitted, rows, targets, arrival)
    if few is not None:
        return few
    if arrival.test is not None:
        fitted = replace(fitted, tested=tested(fitted, rows, targets, arrival.test))
    return added(fitted, rows, targets, layers=arrival.layers, fading=arrival.fading)


@network_by_network
def begun_to_fade(fitted: FittedModel, method: str, fading: Fading, oldest: int) -> FittedModel:
    """After a first fit whose rows had weights by age, the most of which is given."""
    head, moments = fitted.head.linear(method), statistics(fitted, method)
    return replace(fitted, head=holding(head, moments), fading=replace(fading, mixed=False, oldest=oldest))


@network_by_network
def windowed(fitted: FittedModel, method: str, rows: Rows, targets: Targets, size: int) -> FittedModel:
    """After a first fit to these rows, of which the last stay in."""
    if fitted.head.linear(method).output.by_class is not None:
        raise ValueError("A window goes without class_weight='balanced': give the weight of each class as a dict.")
    latest = kept(rows, size)
    assert latest is not None
    window = Window(size).joined(latest)
    return replace(fitted, window=window) if latest.n == rows.n else _from_window(fitted, targets, window)


def tested(fitted: FittedModel, rows: Rows, targets: Targets, asked: RunningScore) -> RunningScore | None:
    """The running score after these rows, which are not in yet."""
    before = asked if fitted.tested is None else replace(fitted.tested, half_life=asked.half_life)
    head = fitted.head.linear("partial_fit")
    if head.output.moments is None or not head.output.moments.count:  # rows wait only where there are others
        return before  # nothing to predict with
    fitted.ready()
    outputs, columns = [], []
    with np.errstate(over="ignore", invalid="ignore"):  # refused in one sentence instead
        for block in rows.blocks("testing the rows", fitted.widest):
            outputs.append(to_numpy(head.outputs(fitted.features(block.X))))
            came = (block.codes, block.Z, block.w, _far(fitted, block.X))
            columns.append([None if part is None else to_numpy(part) for part in came])
    of_rows = [None if parts[0] is None else np.concatenate(parts) for parts in zip(*columns, strict=True)]
    return fitted.targets.tested(before, np.concatenate(outputs), _as_predicted(fitted, *of_rows), targets)


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
    if output.by_class is not None:
        return None
    block = rows.whole()
    with np.errstate(over="ignore", invalid="ignore"):
        F = head.features(fitted.network(block.X))
    if not is_tame(output.moments, F, block.Z, block.w) or (fading is not None and not _keeps_scales(output, F)):
        return None
    score = fitted.tested
    if test is not None:
        head.ready()
        score = test if score is None else replace(score, half_life=test.half_life)
        of_rows = _as_predicted(fitted, block.codes, block.Z, block.w, _far(fitted, block.X))
        score = fitted.targets.tested(score, head.answers(_bounded(fitted, block.X, F)), of_rows, targets)
    share = None if fading is None else fading.weights(0, rows.n, rows.n)
    w = block.w if share is None else share if block.w is None else share * block.w
    waiting = (output.waiting or Waiting(output.moments)).joined(F, block.Z, w, kept)
    if arrival.current:
        output = output.with_row_by_row(waiting, head.hidden)
    elif waiting.count <= MOST_WAITING:
        output = replace(output, waiting=waiting, following=None, solved=False)
    else:
        output = replace(output, moments=waiting.total(), waiting=None, following=None, solved=False)
    fading = now_fading(fitted.fading, fading, rows.n)
    if fitted.bounds is not None:
        fitted = replace(fitted, bounds=fitted.bounds.joined(block.X.min(axis=0), block.X.max(axis=0)))
    return replace(fitted, head=replace(head, output=output), loo_is_stale=True, fading=fading, tested=score)


def _far(fitted: FittedModel, X: Array) -> Array:
    return None if fitted.bounds is None else fitted.bounds.far(X)


def _as_predicted(fitted: FittedModel, codes: Column, Z: Column, w: Column, far: Column) -> Seen:
    """What came with rows, of which some may be far: answers to these are bounded as `predict` does it."""
    ends = fitted.seen if far is not None and far.any() else None
    if ends is None or far is None:
        return Seen(codes, Z, w)
    return Seen(codes, Z, w, (np.where(far[:, None], ends[0], -np.inf), np.where(far[:, None], ends[1], np.inf)))


def _bounded(fitted: FittedModel, X: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Features F of rows X as predicting sees them: far ones are brought back near those that were seen."""
    if fitted.bounds is None or not fitted.bounds.far(X).any():
        return F
    return fitted.head.linear("partial_fit").features(fitted.features(X))


def _keeps_scales(output: Output, F: np.ndarray) -> bool:
    """Whether no feature without a scale gets one by these rows."""
    assert output.held is not None
    assert output.moments is not None
    still = output.held == 0
    return bool(np.all(F[:, still] == output.moments.shift_a[still]))


def _slid(fitted: FittedModel, rows: Rows, targets: Targets, arrival: Arrival) -> FittedModel:
    """With these rows in the window, and without those that leave it."""
    arrival.check_window()
    if fitted.head.linear("partial_fit").output.by_class is not None:
        raise ValueError("A window goes without class_weight='balanced': give the weight of each class as a dict.")
    window = fitted.window
    if window is None:
        if statistics(fitted, "partial_fit").count:
            raise ValueError(
                "Rows are in this model that were not kept, so they cannot leave a window: begin with "
                "partial_fit(X, y, window=...) instead of fit, or with fork()."
            )
        window = Window(arrival.window or 0)
    if arrival.test is not None:
        fitted = replace(fitted, tested=tested(fitted, rows, targets, arrival.test))
    columns = targets.columns_of(fitted.targets)
    window = replace(window if columns is None else window.renumbered(columns), size=arrival.window or window.size)
    before, latest = window.count, kept(rows, window.size)
    assert latest is not None
    gone, window = window.joined(latest).split()
    leaving = sum(chunk.n for chunk in gone)
    if leaving >= before - leaving or latest.n < rows.n:  # as many as stay: making the sums anew costs no more
        return _from_window(seen(fitted, rows.extent()), targets, window)
    new = replace(added(fitted, rows, targets), window=window)
    return _without(new, gone) if gone else new


def _anew_together(models: list[FittedModel]) -> list[FittedModel]:
    """Networks of one model, with sums made anew for all where they were for one: they share the count of steps."""
    windows = [model.window for model in models if model.window is not None]
    if all(window.steps for window in windows):
        return models
    return [
        _from_window(model, model.targets, model.window) if model.window is not None and model.window.steps else model
        for model in models
    ]


def _without(fitted: FittedModel, gone: list[Kept]) -> FittedModel:
    """Without rows that have left the window."""
    head, window = fitted.head.linear("partial_fit"), fitted.window
    assert window is not None
    moments = statistics(fitted, "partial_fit").copy()
    if moments.weight - sum(float(chunk.w.sum()) for chunk in gone) <= LIGHT * moments.weight:
        return _from_window(fitted, fitted.targets, window)
    for each in as_rows(gone, fitted.targets, fitted.network.space, fitted.network.dtype):
        moments.subtract(summed(fitted, head, fitted.network, each, moments).sums)
    moments.follow()
    if window.drifts(moments, head.hidden):
        return _from_window(fitted, fitted.targets, window)
    return with_sums(fitted, head, moments, fitted.targets)


def _from_window(fitted: FittedModel, targets: Targets, window: Window) -> FittedModel:
    """With sums made anew from the rows that are kept."""
    head, empty = fitted.head.linear("partial_fit"), statistics(fitted, "partial_fit").empty()
    moments = copy.copy(empty)
    for each in as_rows(list(window.chunks), targets, fitted.network.space, fitted.network.dtype):
        join(moments, summed(fitted, head, fitted.network, each, moments).sums)
    new = with_sums(fitted, head, moments, targets)
    return replace(new, window=replace(window, steps=0))
