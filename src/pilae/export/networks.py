"""Networks and output layers as operations of a graph."""

from functools import partial, reduce
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from .._arrays import solve_triangular, to_numpy
from .._data.categories import Categories
from .._data.columns import Columns
from .._engine.calibration import Calibration
from .._engine.curve import Curve
from .._engine.pieces import Pieces
from .._engine.scaling import Scaling, Squash
from .._network.averaged import AveragedHead
from .._network.head import EstimatorHead, LinearHead
from .._network.network import Network
from .._network.neurons import HiddenLayer
from .._network.radial import AT_ZERO, Radial
from .graph import FLOAT32, INT64, STRING, Graph, Output
from .images import image_features

FLOAT32_EXPONENT = 126
"""Powers of two that float32 holds, of either sign."""

SHARE_MARGIN = 1.00001
"""A little more of the plain probabilities than would make the two of a tie equal: rounding must not turn it."""


SAME_NAME = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu", "sin": "Sin", "softplus": "Softplus"}
"""Activations that ONNX has as operators."""


def _activated(graph: Graph, name: str, x: str) -> str:
    if name in SAME_NAME:
        return graph.op(SAME_NAME[name], x)
    if name == "relu2":
        y = graph.op("Relu", x)
        return graph.op("Mul", y, y)
    if name == "swish":
        # not x times its sigmoid, which onnxruntime before 1.31 fuses into an operator that it lacks for float64
        return graph.op("Div", x, graph.op("Add", graph.op("Exp", graph.op("Neg", x)), 1.0))
    if name == "gelu":
        inner = graph.outside(graph.op("Mul", x, 0.5**0.5))
        inner = graph.inside(graph.op("Erf", inner))  # runtimes have it in float32 alone
        return graph.op("Mul", graph.op("Mul", x, 0.5), graph.op("Add", inner, 1.0))
    return x


def _scaled(graph: Graph, scaling: Scaling | None, x: str) -> str:
    if scaling is None:
        return x
    columns, x = x, graph.op("Mul", graph.op("Sub", x, scaling.mean), scaling.inverse)
    if isinstance(scaling, Pieces):
        own = graph.op("Gather", columns, graph.integers(scaling.source), axis=1)
        ramps = graph.op("Mul", graph.op("Sub", own, scaling.start), scaling.steepness)
        return graph.op("Concat", x, graph.op("Min", graph.op("Max", ramps, 0.0), 1.0), axis=1)
    if not isinstance(scaling, Squash):
        return x
    # asinh(x) = sign(x) log(|x| + sqrt(x^2 + 1)): not every runtime has the operator itself
    root = graph.op("Sqrt", graph.op("Add", graph.op("Mul", x, x), 1.0))
    return graph.op("Mul", graph.op("Sign", x), graph.op("Log", graph.op("Add", graph.op("Abs", x), root)))


def _taken_in(graph: Graph, columns: Columns, x: str) -> str:
    """`Intake`: gaps filled and flagged, categories as columns of 0 and 1."""
    intake = columns.intake
    if intake is None:
        return x
    missing = graph.op("IsNaN", x)
    filled = graph.op("Where", missing, intake.fill, x)
    if intake.is_plain:
        return filled
    parts = [graph.op("Gather", filled, graph.integers(intake.numeric), axis=1)]
    for each in intake.categories:
        own = graph.op("Gather", x, graph.integers([each.column]), axis=1)
        parts.append(_of_categories(graph, each, graph.op("Equal", own, each.values[None, :])))
    if len(intake.flagged):
        parts.append(graph.op("Gather", graph.inside(missing), graph.integers(intake.flagged), axis=1))
    return graph.side_by_side(parts)


def _of_categories(graph: Graph, categories: Categories, equal: str) -> str:
    """The columns of 0 and 1 from which of the values a row has."""
    equal, numbers, share = graph.inside(equal), categories.numbers[:, None], categories.share
    if share is None:
        return graph.op("MatMul", equal, (numbers == np.arange(categories.width)) * 1.0)
    return graph.op("Add", graph.op("MatMul", equal, (numbers == 1) - share * (numbers >= 0)), share)


def _features_of_rows(graph: Graph, model: Any, x: str) -> str:
    return _features(graph, model.network_, _taken_in(graph, model.fitted_.columns, graph.inside(x)))


def _features(graph: Graph, network: Network, x: str) -> str:
    beside = [_features(graph, other, x) for other in network.others]
    if network.gauge is not None:
        if np.max(np.abs(network.gauge)) > FLOAT32_EXPONENT:
            raise ValueError(
                "This model was fitted on numbers that float32 does not hold, and an ONNX graph takes float32 rows: "
                "bring the columns of X to ordinary units, and fit again."
            )
        x = graph.op("Mul", x, np.ldexp(1.0, network.gauge))
    x = _scaled(graph, network.scaling, x)
    levels = [x]
    for layer in network.layers:
        levels.append(_activated(graph, layer.activation, graph.product(levels[-1], layer.weights)))
    return graph.side_by_side([*(levels if network.skip else levels[-1:]), *beside])


def _head_input(graph: Graph, model: Any, x: str) -> str:
    """What the head sees: far rows are brought back as `Bounds` does it."""
    network, bounds = model.network_, model.fitted_.bounds
    x = _taken_in(graph, model.fitted_.columns, graph.inside(x))
    if bounds is not None:
        lower, upper, margin = _limits(model.fitted_)
        near = graph.op("Min", graph.op("Max", x, lower), upper)
        beyond = graph.op("Sub", x, near)
        share = graph.op("Div", beyond, graph.op("Add", graph.op("Abs", beyond), margin))
        x = graph.op("Add", near, graph.op("Mul", share, margin))
    return _features(graph, network, x)


def _limits(fitted: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of `Bounds`, in the units of the rows: lower, upper, margin."""
    gauge, bounds = fitted.network.gauge, fitted.bounds
    powers = 1.0 if gauge is None else np.ldexp(1.0, -gauge)
    return bounds.lower * powers, bounds.upper * powers, bounds.margin * powers


def _scores(graph: Graph, head: LinearHead, x: str) -> str:
    if isinstance(head, AveragedHead):
        edges = pairwise(accumulate(head.columns, initial=0))
        parts = [graph.op("Slice", x, *(graph.integers([place]) for place in (*edge, 1))) for edge in edges]
        each = [_scores(graph, one, part) for one, part in zip((head.first, *head.others), parts, strict=True)]
        return graph.op("Mul", reduce(partial(graph.op, "Add"), each), 1.0 / len(each))
    if head.hidden is not None:
        x = _hidden(graph, head.hidden, x)
    return graph.op("Add", graph.op("MatMul", x, head.output.coef), head.output.intercept)


def _hidden(graph: Graph, hidden: HiddenLayer, x: str) -> str:
    x = _scaled(graph, hidden.scaling, x)
    if isinstance(hidden, Radial):
        h = _responses(graph, hidden, x)
    else:
        h = _activated(graph, hidden.activation, graph.op("Add", graph.product(x, hidden.weights), hidden.bias))
    return graph.op("Concat", x, h, axis=1) if hidden.direct else h


def _responses(graph: Graph, hidden: Radial, x: str) -> str:
    """Of neurons of a distance: |t|^2 - 2 t.a + |a|^2, as they are made here."""
    if hidden.root is not None:
        x = graph.op("MatMul" if hidden.root.ndim == 2 else "Mul", x, hidden.root)
    own = graph.op("Mul", graph.op("ReduceSum", graph.op("Mul", x, x), graph.integers([1]), keepdims=1), AT_ZERO)
    anchors = to_numpy(hidden.anchors)
    r2 = graph.op("Add", graph.op("MatMul", x, -2.0 * anchors.T), AT_ZERO * (anchors**2).sum(axis=1))
    r2 = graph.op("Max", graph.op("Add", r2, own), 0.0)
    if hidden.activation == "gauss":
        return graph.op("Exp", graph.op("Mul", r2, -1.0 / hidden.length**2))
    return graph.op("Exp", graph.op("Mul", graph.op("Sqrt", r2), -1.0 / hidden.length))


def _probabilities(graph: Graph, calibration: Calibration, s: str, n_classes: int) -> str:
    """`Calibration` for classes."""
    logits = graph.op("Mul", s, calibration.temperature)
    plain = graph.op("Softmax", logits, axis=1)
    if calibration.weights is None:
        return plain
    mapped = graph.op("MatMul", logits, calibration.weights)
    P = graph.op("Softmax", graph.op("Add", mapped, calibration.bias), axis=1)
    zero, one, axis = graph.constant(0.0), graph.constant(1.0), graph.integers([1])
    best = graph.op("ArgMax", s, axis=1, keepdims=1)
    wanted = graph.inside(graph.op("Equal", best, graph.integers(np.arange(n_classes)[None, :])))
    over = graph.op("Sub", P, graph.op("ReduceSum", graph.op("Mul", P, wanted), axis, keepdims=1))
    under = graph.op("Sub", graph.op("ReduceSum", graph.op("Mul", plain, wanted), axis, keepdims=1), plain)
    positive = graph.op("Greater", over, zero)
    safe = graph.op("Where", positive, graph.op("Add", over, under), one)
    shares = graph.op("Where", positive, graph.op("Div", over, safe), zero)
    share = graph.op("ReduceMax", shares, axis, keepdims=1)
    share = graph.op("Min", graph.op("Mul", share, SHARE_MARGIN), one)
    return graph.op("Add", graph.op("Mul", graph.op("Sub", one, share), P), graph.op("Mul", share, plain))


def _softmax_head(graph: Graph, head: EstimatorHead, x: str) -> str:
    """Probabilities of LogisticRegression on whitened features: whitening is part of its coefficients."""
    model = head.estimator
    assert head.factor is not None
    coef = to_numpy(solve_triangular(head.factor, head.factor.dtype.type(1) * model.coef_.T, transposed=True))
    x = _scaled(graph, head.scaling, x)
    logits = graph.op("Add", graph.op("MatMul", x, coef), model.intercept_)
    if coef.shape[1] > 1:
        return graph.op("Softmax", logits, axis=1)
    positive = graph.op("Sigmoid", logits)
    return graph.op("Concat", graph.op("Sub", 1.0, positive), positive, axis=1)


def classified(graph: Graph, model: Any, x: str) -> list[Output]:
    head, classes, multilabel = model.head_, model.classes_, model.multilabel_
    head.ready()
    features = _head_input(graph, model, x)
    if isinstance(head, EstimatorHead):
        if head.factor is None or not isinstance(head.estimator, LogisticRegression):
            raise _no_estimators(head.estimator)
        decided = proba = _softmax_head(graph, head, features)
    else:
        decided = _scores(graph, head, features)
        calibration = head.calibrated(model.fitted_.targets)
        if multilabel:
            doubled = graph.op("Sub", graph.op("Mul", decided, 2.0), 1.0)
            proba = graph.op("Sigmoid", graph.op("Mul", doubled, calibration.temperature))
        else:
            proba = _probabilities(graph, calibration, decided, len(classes))
    if multilabel:
        label = graph.op("Cast", graph.op("Greater", decided, 0.5), to=INT64)
        label_output = Output("label", label, INT64, [len(classes)])
    else:
        labels, dtype = _labels(classes)
        number = graph.op("ArgMax", decided, axis=1, keepdims=0)
        label_output = Output("label", graph.op("Gather", graph.tensor(labels), number, axis=0), dtype, [])
    return [label_output, Output("probabilities", graph.outside(proba), FLOAT32, [len(classes)])]


def _labels(classes: np.ndarray) -> tuple[np.ndarray, int]:
    """The classes as ONNX has them, and its number of their dtype."""
    if np.issubdtype(classes.dtype, np.integer) or classes.dtype == bool:
        return classes.astype(np.int64), INT64
    if np.issubdtype(classes.dtype, np.floating):
        return classes.astype(np.float32), FLOAT32
    return np.array([str(label) for label in classes], dtype=object), STRING


def regressed(graph: Graph, model: Any, x: str) -> list[Output]:
    head = model.head_
    head.ready()
    if isinstance(head, EstimatorHead):
        raise _no_estimators(head.estimator)
    value = _scores(graph, head, _head_input(graph, model, x))
    curve = model.fitted_.targets.curve
    if curve is not None:
        value = _mean_on_curve(graph, curve, value)
    value = graph.outside(_not_beyond(graph, model.fitted_, x, value))
    return [Output("prediction", value, FLOAT32, [int(head.output.coef.shape[1])])]


def _not_beyond(graph: Graph, fitted: Any, x: str, value: str) -> str:
    """Answers to far rows, no higher and no lower than anything that was seen."""
    if fitted.seen is None:
        return value
    x, (lower, upper, _) = _taken_in(graph, fitted.columns, graph.inside(x)), _limits(fitted)
    beyond = graph.op("Max", graph.op("Sub", x, upper), graph.op("Sub", lower, x))
    far = graph.op("Greater", graph.op("ReduceMax", beyond, graph.integers([1]), keepdims=1), graph.constant(0.0))
    low, high = fitted.seen
    return graph.op("Where", far, graph.op("Max", graph.op("Min", value, high), low), value)


def _mean_on_curve(graph: Graph, curve: Curve, t: str) -> str:
    """`Curve.mean`, whose hyperbolic functions are sums of e^t and e^-t."""
    t = graph.op("Max", graph.op("Min", t, curve.high), curve.low)
    up = graph.op("Mul", graph.op("Exp", t), curve.spread * (curve.even + curve.odd) / 2)
    down = graph.op("Mul", graph.op("Exp", graph.op("Neg", t)), curve.spread * (curve.odd - curve.even) / 2)
    mean = graph.op("Add", graph.op("Add", up, down), curve.middle)
    return graph.op("Max", graph.op("Min", mean, curve.back(curve.high)), curve.back(curve.low))


def transformed(graph: Graph, model: Any, x: str) -> list[Output]:
    if hasattr(model, "branches_"):
        x = graph.op("Reshape", x, graph.integers([-1, model.n_features_in_]))  # images may come as such, or as rows
        value = image_features(graph, model.branches_, graph.inside(x))
    else:
        value = _features_of_rows(graph, model, x)
    return [Output("features", graph.outside(value), FLOAT32, [int(model._n_features_out)])]


def _no_estimators(estimator: object) -> ValueError:
    return ValueError(
        f"The head is a {type(estimator).__name__}, and ONNX export covers the heads 'shln', 'ridge' and 'softmax': "
        "export the features (StackedPILAE) and convert the estimator with skl2onnx."
    )
