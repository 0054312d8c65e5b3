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
from sklearn.utils.validation import check_is_fitted

from .._base.extras import extra
from .._base.files import whole_file
from .._network.head import LinearHead
from .graph import Graph, SharedGraph
from .networks import classified, regressed, transformed

OPSET = 18


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
        label, proba = classified(graph, model, "X")
        labels = model.classes_
        number = np.issubdtype(labels.dtype, np.integer) or labels.dtype == bool or model.multilabel_
        kind = TensorProto.INT64 if number else TensorProto.STRING
        if np.issubdtype(labels.dtype, np.floating):
            kind = TensorProto.FLOAT
        width = [len(labels)] if model.multilabel_ else []
        outputs = [("label", label, kind, width), ("probabilities", proba, TensorProto.FLOAT, [len(labels)])]
    elif hasattr(model, "head_"):
        columns = int(model.head_.output.coef.shape[1]) if isinstance(model.head_, LinearHead) else 1
        outputs = [("prediction", regressed(graph, model, "X"), TensorProto.FLOAT, [columns])]
    else:
        outputs = [("features", transformed(graph, model, "X"), TensorProto.FLOAT, [int(model._n_features_out)])]
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
        "classifier": (calculate_linear_classifier_output_shapes, classified, options),
        "regressor": (calculate_linear_regressor_output_shapes, regressed, None),
        "transformer": (_transformer_shape, transformed, None),
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
