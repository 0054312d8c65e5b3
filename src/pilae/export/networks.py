"""Networks and output layers as operations of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from .._arrays import solve_triangular, to_numpy
from .._engine.scaling import Scaling, Squash
from .._network.calibration import Calibration
from .._network.head import EstimatorHead, LinearHead
from .._network.network import Network
from .._network.neurons import Hidden
from .graph import INT64, Graph
from .images import image_features

FLOAT32_EXPONENT = 126
"""Powers of two that float32 holds, of either sign."""


def _activated(graph: Graph, name: str, x: str) -> str:
    simple = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu", "sin": "Sin", "softplus": "Softplus"}
    if name in simple:
        return graph.op(simple[name], x)
    if name == "relu2":
        y = graph.op("Relu", x)
        return graph.op("Mul", y, y)
    if name == "swish":
        # not x times its sigmoid, which onnxruntime before 1.31 fuses into an operator that it lacks for float64
        return graph.op("Div", x, graph.op("Add", graph.op("Exp", graph.op("Neg", x)), graph.constant(1.0)))
    if name == "gelu":
        inner = graph.op("Mul", x, graph.constant(0.5**0.5))
        inner = graph.inside(graph.op("Erf", graph.outside(inner)))  # runtimes have it in float32 alone
        return graph.op("Mul", graph.op("Mul", x, graph.constant(0.5)), graph.op("Add", inner, graph.constant(1.0)))
    return x


def _scaled(graph: Graph, scaling: Scaling | None, x: str) -> str:
    if scaling is None:
        return x
    x = graph.op("Mul", graph.op("Sub", x, graph.constant(scaling.mean)), graph.constant(scaling.inverse))
    if not isinstance(scaling, Squash):
        return x
    # asinh(x) = sign(x) log(|x| + sqrt(x^2 + 1)): not every runtime has the operator itself
    size = graph.op("Abs", x)
    root = graph.op("Sqrt", graph.op("Add", graph.op("Mul", x, x), graph.constant(1.0)))
    return graph.op("Mul", graph.op("Sign", x), graph.op("Log", graph.op("Add", size, root)))


def _features(graph: Graph, network: Network, x: str) -> str:
    beside = [_features(graph, other, x) for other in network.others]
    if network.gauge is not None:
        if np.max(np.abs(network.gauge)) > FLOAT32_EXPONENT:
            raise ValueError(
                "This model was fitted on numbers that float32 does not hold, and an ONNX graph takes float32 rows: "
                "bring the columns of X to ordinary units, and fit again."
            )
        x = graph.op("Mul", x, graph.constant(np.ldexp(1.0, network.gauge)))
    x = _scaled(graph, network.scaling, x)
    seen = [x]
    for layer in network.layers:
        x = _activated(graph, layer.activation, graph.product(x, layer.weights))
        seen.append(x)
    parts = [*(seen if network.skip else [x]), *beside]
    return x if len(parts) == 1 else graph.op("Concat", *parts, axis=1)


def _hidden(graph: Graph, hidden: Hidden, x: str) -> str:
    x = _scaled(graph, hidden.scaling, x)
    product = graph.product(x, hidden.weights)
    h = _activated(graph, hidden.activation, graph.op("Add", product, graph.constant(hidden.bias)))
    return graph.op("Concat", x, h, axis=1) if hidden.direct else h


def _scores(graph: Graph, head: LinearHead, x: str) -> str:
    if head.hidden is not None:
        x = _hidden(graph, head.hidden, x)
    product = graph.op("MatMul", x, graph.constant(head.output.coef))
    return graph.op("Add", product, graph.constant(head.output.intercept))


def _probabilities(graph: Graph, calibration: Calibration, s: str, n_classes: int) -> str:
    """`Calibration` for classes."""
    logits = graph.op("Mul", s, graph.constant(calibration.temperature))
    plain = graph.op("Softmax", logits, axis=1)
    if calibration.weights is None:
        return plain
    mapped = graph.op("MatMul", logits, graph.constant(calibration.weights))
    P = graph.op("Softmax", graph.op("Add", mapped, graph.constant(calibration.bias)), axis=1)
    zero, one, axis = graph.constant(0.0), graph.constant(1.0), graph.constant([1], np.int64)
    best = graph.op("ArgMax", s, axis=1, keepdims=1)
    wanted = graph.inside(graph.op("Equal", best, graph.constant(np.arange(n_classes)[None, :], np.int64)))
    over = graph.op("Sub", P, graph.op("ReduceSum", graph.op("Mul", P, wanted), axis, keepdims=1))
    under = graph.op("Sub", graph.op("ReduceSum", graph.op("Mul", plain, wanted), axis, keepdims=1), plain)
    positive = graph.op("Greater", over, zero)
    safe = graph.op("Where", positive, graph.op("Add", over, under), one)
    shares = graph.op("Where", positive, graph.op("Div", over, safe), zero)
    share = graph.op("ReduceMax", shares, axis, keepdims=1)
    share = graph.op("Min", graph.op("Mul", share, graph.constant(1.00001)), one)
    return graph.op("Add", graph.op("Mul", graph.op("Sub", one, share), P), graph.op("Mul", share, plain))


def _softmax_head(graph: Graph, head: EstimatorHead, x: str) -> str:
    """Probabilities of LogisticRegression on whitened features: whitening is part of its coefficients."""
    model = head.estimator
    assert head.factor is not None
    coef = to_numpy(solve_triangular(head.factor, head.factor.dtype.type(1) * model.coef_.T, transposed=True))
    x = _scaled(graph, head.scaling, x)
    logits = graph.op("Add", graph.op("MatMul", x, graph.constant(coef)), graph.constant(model.intercept_))
    if coef.shape[1] > 1:
        return graph.op("Softmax", logits, axis=1)
    positive = graph.op("Sigmoid", logits)
    return graph.op("Concat", graph.op("Sub", graph.constant(1.0), positive), positive, axis=1)


def classified(graph: Graph, model: Any, x: str) -> tuple[str, str]:
    """(labels, probabilities)."""
    head, multilabel = model.head_, model.multilabel_
    features = _features(graph, model.network_, graph.inside(x))
    if isinstance(head, EstimatorHead):
        if head.factor is None or not isinstance(head.estimator, LogisticRegression):
            raise _no_estimators(head.estimator)
        decided = proba = _softmax_head(graph, head, features)
    else:
        decided = _scores(graph, head, features)
        calibration = head.calibrated(multilabel)
        if multilabel:
            doubled = graph.op("Sub", graph.op("Mul", decided, graph.constant(2.0)), graph.constant(1.0))
            proba = graph.op("Sigmoid", graph.op("Mul", doubled, graph.constant(calibration.temperature)))
        else:
            proba = _probabilities(graph, calibration, decided, len(model.classes_))
    if multilabel:
        return graph.op("Cast", graph.op("Greater", decided, graph.constant(0.5)), to=INT64), graph.outside(proba)
    numbers = graph.op("ArgMax", decided, axis=1, keepdims=0)
    return graph.op("Gather", _labels(graph, model.classes_), numbers, axis=0), graph.outside(proba)


def _labels(graph: Graph, classes: np.ndarray) -> str:
    if np.issubdtype(classes.dtype, np.integer) or classes.dtype == bool:
        return graph.constant(classes, np.int64)
    if np.issubdtype(classes.dtype, np.floating):
        return graph.constant(classes, np.float32)
    return graph.constant(np.array([str(label) for label in classes], dtype=object), object)


def regressed(graph: Graph, model: Any, x: str) -> str:
    if isinstance(model.head_, EstimatorHead):
        raise _no_estimators(model.head_.estimator)
    return graph.outside(_scores(graph, model.head_, _features(graph, model.network_, graph.inside(x))))


def transformed(graph: Graph, model: Any, x: str) -> str:
    if hasattr(model, "branches_"):  # images
        return graph.outside(image_features(graph, model.branches_, graph.inside(x)))
    return graph.outside(_features(graph, model.network_, graph.inside(x)))


def _no_estimators(estimator: Any) -> ValueError:
    return ValueError(
        f"The head is a {type(estimator).__name__}, and ONNX export covers the heads 'shln', 'ridge' and 'softmax': "
        "export the features (StackedPILAE) and convert the estimator with skl2onnx."
    )
