"""The numeric network as an ONNX graph: a file of its own, or a part of a scikit-learn pipeline through skl2onnx.

Rows go in and results come out in float32. Between them the graph computes in float64: encoders are pseudoinverses with
large weights of either sign, and each layer magnifies what was rounded below it. Where speed matters more, the first
product, mostly the largest by far, is in float32.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from ._arrays import solve_triangular, to_numpy
from ._base.extras import extra
from ._base.whole import whole_file
from ._engine.scaling import Scaling, Squash
from ._network.head import Calibration, EstimatorHead, Hidden, LinearHead
from ._network.network import Network

OPSET = 18

FLOAT32_EXPONENT = 126
"""Powers of two that float32 holds, of either sign."""

FLOAT32, INT64, FLOAT64 = 1, 7, 11
"""ONNX's numbers of these dtypes."""


class Graph:
    """Nodes and constants of a graph that is being made. Values are known by their names."""

    def __init__(self, first: str) -> None:
        self.first = first
        """What the next product is computed in."""
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """One operation, and the name of its result."""
        from onnx import helper

        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=f"node_{len(self.nodes)}", **attributes))
        return name

    def tensor(self, array: np.ndarray) -> str:
        """An array as a constant."""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """A constant. Float32 weights that are wanted in float64 are stored as they are: half the file, and runtimes
        cast them once, when they load it."""
        array = np.ascontiguousarray(to_numpy(value)).reshape(np.shape(value))
        if array.dtype == np.float32 and dtype == np.float64:
            return self.inside(self.tensor(array))
        return self.tensor(array.astype(dtype))

    def product(self, x: str, weights: Any) -> str:
        """x weights, rounded to float32 in the first product of a float32 graph alone."""
        first, self.first = self.first, "float64"
        if first == "float64":
            return self.op("MatMul", x, self.constant(weights))
        return self.inside(self.op("MatMul", self.outside(x), self.constant(weights, np.float32)))

    def inside(self, x: str) -> str:
        """x in the dtype that the graph computes in."""
        return self.op("Cast", x, to=FLOAT64)

    def outside(self, x: str) -> str:
        return self.op("Cast", x, to=FLOAT32)


class SharedGraph(Graph):
    """The same within a graph that skl2onnx makes."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.first = "float64"
        self.scope, self.container = scope, container

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = self.scope.get_unique_variable_name(kind.lower())
        node = self.scope.get_unique_operator_name(kind)
        self.container.add_node(kind, list(inputs), [name], name=node, **attributes)
        return name

    def tensor(self, array: np.ndarray) -> str:
        from onnx import TensorProto, numpy_helper

        name = self.scope.get_unique_variable_name("constant")
        if array.dtype == object:
            content = [item.encode() for item in array.tolist()]
            self.container.add_initializer(name, TensorProto.STRING, list(array.shape), content)
        else:
            tensor = numpy_helper.from_array(array, name)
            self.container.add_initializer(name, tensor.data_type, list(array.shape), tensor)
        return name


# ------------------------------------------------------------------------------------------------- the pieces


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


def _classified(graph: Graph, model: Any, x: str) -> tuple[str, str]:
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


def _regressed(graph: Graph, model: Any, x: str) -> str:
    if isinstance(model.head_, EstimatorHead):
        raise _no_estimators(model.head_.estimator)
    return graph.outside(_scores(graph, model.head_, _features(graph, model.network_, graph.inside(x))))


def _transformed(graph: Graph, model: Any, x: str) -> str:
    if hasattr(model, "onnx_features"):  # it is not made of the layers that this file knows
        return graph.outside(model.onnx_features(graph, graph.inside(x)))
    return graph.outside(_features(graph, model.network_, graph.inside(x)))


def _no_estimators(estimator: Any) -> ValueError:
    return ValueError(
        f"The head is a {type(estimator).__name__}, and ONNX export covers the heads 'shln', 'ridge' and 'softmax': "
        "export the features (StackedPILAE) and convert the estimator with skl2onnx."
    )


# ------------------------------------------------------------------------------------------------- whole files


class OnnxMixin:
    """`to_onnx` for estimators."""

    kinds: ClassVar[dict[type, str]] = {}
    """Public estimators, and what skl2onnx should take each for."""

    def __init_subclass__(cls, onnx: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if onnx is not None:
            OnnxMixin.kinds[cls] = onnx

    def to_onnx(self, path: str | os.PathLike, *, dtype: str = "float64") -> None:
        """Write the fitted network as an ONNX file: float32 rows "X" in; "label" and "probabilities" out for classes,
        "prediction" for numbers, "features" for transformers.

        Parameters
        ----------
        path : path-like
        dtype : {"float64", "float32"}, default="float64"
            What the first product, rows times weights, is computed in: the largest mostly. All else is float64.

        Notes
        -----
        Against a model with dtype="float64" that is given the same float32 rows, probabilities differ by less than 1e-6
        (float64) or 1e-5 (float32). A model with dtype="float32" rounds the features of its layers itself: with either
        graph the difference is up to 1e-5 without layers, 3e-5 with one, 3e-4 with two (iris, digits, wine and breast
        cancer of scikit-learn), and the graph is the more exact of the two. Weights are stored in the model's dtype.

        Labels are numbers or text, as ONNX wants them: truth values become 0 and 1.

        It covers the numeric network: what stands before it (a scaler, a table encoder) is not in the file. For
        pipelines of scikit-learn's own transformers call `pilae.export.register()` and convert with skl2onnx.
        """
        check_is_fitted(self)
        to_onnx(self, path, dtype)


def onnx_model(model: Any, dtype: str = "float64") -> Any:
    """The model as an ONNX ModelProto with input "X" and outputs "label" and "probabilities", "prediction" or
    "features"."""
    onnx = extra("onnx", "onnx", "ONNX export")
    TensorProto, checker, helper = onnx.TensorProto, onnx.checker, onnx.helper
    if dtype not in ("float32", "float64"):
        raise ValueError(f"'dtype' must be 'float64' or 'float32'. Got {dtype!r} instead.")
    graph = Graph(dtype)
    if hasattr(model, "classes_"):
        label, proba = _classified(graph, model, "X")
        labels = model.classes_
        number = np.issubdtype(labels.dtype, np.integer) or labels.dtype == bool or model.multilabel_
        kind = TensorProto.INT64 if number else TensorProto.STRING
        if np.issubdtype(labels.dtype, np.floating):
            kind = TensorProto.FLOAT
        width = [len(labels)] if model.multilabel_ else []
        outputs = [("label", label, kind, width), ("probabilities", proba, TensorProto.FLOAT, [len(labels)])]
    elif hasattr(model, "head_"):
        columns = int(model.head_.output.coef.shape[1]) if isinstance(model.head_, LinearHead) else 1
        outputs = [("prediction", _regressed(graph, model, "X"), TensorProto.FLOAT, [columns])]
    else:
        outputs = [("features", _transformed(graph, model, "X"), TensorProto.FLOAT, [int(model._n_features_out)])]
    for name, value, _, _ in outputs:
        graph.nodes.append(helper.make_node("Identity", [value], [name], name=f"output_{name}"))
    made = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "pilae",
            [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, int(model.n_features_in_)])],
            [helper.make_tensor_value_info(name, kind, [None, *width]) for name, _, kind, width in outputs],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        producer_name="pilae",
    )
    made.ir_version = min(made.ir_version, 10)  # what runtimes of the last two years read
    checker.check_model(made)
    return made


def to_onnx(model: Any, path: str | os.PathLike, dtype: str = "float64") -> None:
    """Write the model as an ONNX file, whole or not at all."""
    made = onnx_model(model, dtype)
    with whole_file(Path(path)) as file:
        file.write(made.SerializeToString())


def register() -> None:
    """Teach skl2onnx to convert pilae's estimators within pipelines. Called once; skl2onnx must be installed."""
    skl2onnx = extra("skl2onnx", "onnx", "Converting pipelines")
    from skl2onnx.common.shape_calculator import (
        calculate_linear_classifier_output_shapes,
        calculate_linear_regressor_output_shapes,
    )

    options = {"zipmap": [True, False, "columns"], "nocl": [True, False], "output_class_labels": [False, True]}
    ways: dict[str, tuple[Any, Any, Any]] = {
        "classifier": (calculate_linear_classifier_output_shapes, _classified, options),
        "regressor": (calculate_linear_regressor_output_shapes, _regressed, None),
        "transformer": (_transformer_shape, _transformed, None),
    }
    for cls, kind in OnnxMixin.kinds.items():
        shapes, build, allowed = ways[kind]
        skl2onnx.update_registered_converter(cls, f"Pilae{cls.__name__}", shapes, _converter(build), options=allowed)


def _transformer_shape(operator: Any) -> None:
    from skl2onnx.common.data_types import FloatTensorType

    rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type = FloatTensorType([rows, int(operator.raw_operator._n_features_out)])


def _converter(build: Any) -> Any:
    def convert(scope: Any, operator: Any, container: Any) -> None:
        graph = SharedGraph(scope, container)
        made = build(graph, operator.raw_operator, operator.inputs[0].full_name)
        for value, output in zip((made,) if isinstance(made, str) else made, operator.outputs, strict=True):
            container.add_node("Identity", [value], [output.full_name], name=scope.get_unique_operator_name("Identity"))

    return convert
