"""Models as ONNX graphs: a file of its own, or a part of a scikit-learn pipeline through skl2onnx.

Rows, or the columns of a table, go in, and results come out in float32. Between them the graph computes in float64:
encoders are pseudoinverses with large weights of either sign, and each layer magnifies what was rounded below it. Where
speed matters more, the first product, mostly the largest by far, is in float32.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from .._base.extras import extra
from .._base.files import whole_file
from .._data.tables import Table
from .graph import FLOAT32, Graph, Output
from .networks import classified, regressed, transformed
from .tables import ML, Input, inputs_of, rows_of

OPSET, ML_OPSET = 18, 3

Builder = Callable[[Graph, Any, str], list[Output]]
BUILDERS: dict[str, Builder] = {"classifier": classified, "regressor": regressed, "transformer": transformed}
"""From a graph, a fitted estimator of some kind and the name of its rows to results."""


class OnnxMixin:
    """`to_onnx` for estimators."""

    _kinds: ClassVar[dict[type, str]] = {}
    """Public estimators, and what skl2onnx should take each for."""
    _refused: ClassVar[list[type]] = []
    """Those whose operators ONNX does not have."""

    def __init_subclass__(cls, onnx: str | None = None, **options: object) -> None:
        super().__init_subclass__(**options)
        if onnx == "refused":
            OnnxMixin._refused.append(cls)
        elif onnx is not None:
            OnnxMixin._kinds[cls] = onnx

    def to_onnx(self, path: str | os.PathLike, *, dtype: str = "float64") -> None:
        """Write the fitted model as an ONNX file: float32 rows "X" in, or of a table of mixed columns an input for each
        (see Notes); "label" and "probabilities" out for classes, "prediction" for numbers, "features" for transformers.

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

        A model that was fitted on a DataFrame of mixed columns takes one input of shape (rows, 1) for each column, by
        its name: float32 for numbers and for durations in seconds (NaN is a gap); text for categories and truth values
        ("" is a gap; take blanks around words away first, which the model overlooks and ONNX cannot); int64 for dates,
        seconds since 1970 in universal time (the smallest int64, NumPy's NaT, is a gap). Columns without a value have
        none. Gaps and unknown categories are taken as by the model itself. Free text is refused: hashes of its pieces
        are not among the operators of ONNX.

        Only pilae's own model is in the file. For pipelines of scikit-learn's transformers call
        `pilae.export.register()` and convert with skl2onnx.
        """
        check_is_fitted(self)
        to_onnx(self, path, dtype)


def onnx_model(model: Any, dtype: str = "float64", *, by_column: bool = False) -> Any:
    """The model as an ONNX ModelProto with outputs "label" and "probabilities", "prediction" or "features", and input
    "X"; or an input for each column, by its name, which is the only way for tables of mixed columns."""
    if dtype not in ("float32", "float64"):
        raise ValueError(f"'dtype' must be 'float64' or 'float32'. Got {dtype!r} instead.")
    kinds = [OnnxMixin._kinds[cls] for cls in type(model).__mro__ if cls in OnnxMixin._kinds]
    if not kinds:
        raise _refusal(model)
    onnx = extra("onnx", "onnx", "ONNX export")
    helper = onnx.helper
    build = BUILDERS[kinds[0]]
    model = model._settled()
    inputs = onnx_inputs(model) if by_column or _table(model) is not None else None
    graph = Graph(dtype, taken={each.name for each in inputs or ()})
    outputs = build(graph, model, "X" if inputs is None else rows_of(graph, _table(model), inputs))
    graph.nodes += [("Identity", [value], name, {}) for name, value, _, _ in outputs]
    made = helper.make_model(
        helper.make_graph(
            [helper.make_node(kind, names, [out], f"node_{out}", **more) for kind, names, out, more in graph.nodes],
            "pilae",
            [helper.make_tensor_value_info("X", FLOAT32, [None, int(model.n_features_in_)])]
            if inputs is None
            else [helper.make_tensor_value_info(each.name, each.dtype, [None, 1]) for each in inputs],
            [helper.make_tensor_value_info(name, kind, [None, *columns]) for name, _, kind, columns in outputs],
            [onnx.numpy_helper.from_array(array, name) for name, array in graph.constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)],
        producer_name="pilae",
    )
    made.ir_version = min(made.ir_version, 10)  # what runtimes of the last two years read
    onnx.checker.check_model(made)
    return made


def _refusal(model: Any) -> ValueError:
    return ValueError(
        f"A {type(model).__name__} is not written as ONNX. Other estimators that have to_onnx are, and pipelines of "
        "them by skl2onnx after pilae.export.register(); of images, make_pipeline(ConvPILAE(), "
        "PILAEClassifier(depth=0, head='ridge'))."
    )


def _table(model: Any) -> Table | None:
    """What makes numbers of the columns of its rows, where these are a table of mixed columns."""
    fitted = getattr(model, "fitted_", None)
    return getattr(getattr(fitted, "columns", None), "table", None)


def onnx_inputs(model: Any) -> list[Input]:
    """The inputs of its graph, one for each column."""
    return inputs_of(model.fitted_.columns)


def to_onnx(model: OnnxMixin, path: str | os.PathLike, dtype: str = "float64", *, by_column: bool = False) -> None:
    """Write the model as an ONNX file, whole or not at all."""
    made = onnx_model(model, dtype, by_column=by_column)
    with whole_file(Path(path)) as file:
        file.write(made.SerializeToString())


def register() -> None:
    """Teach skl2onnx to convert pilae's estimators within pipelines. Called once; skl2onnx must be installed."""
    skl2onnx = extra("skl2onnx", "onnx", "Converting pipelines")
    from skl2onnx.common import shape_calculator

    shapes = {
        "classifier": shape_calculator.calculate_linear_classifier_output_shapes,
        "regressor": shape_calculator.calculate_linear_regressor_output_shapes,
        "transformer": _transformer_shape,
    }
    options = {"zipmap": [True, False, "columns"], "nocl": [True, False], "output_class_labels": [False, True]}
    for cls, kind in OnnxMixin._kinds.items():
        convert, allowed = partial(_convert, BUILDERS[kind]), options if kind == "classifier" else None
        skl2onnx.update_registered_converter(cls, f"Pilae{cls.__name__}", shapes[kind], convert, options=allowed)
    for cls in OnnxMixin._refused:
        skl2onnx.update_registered_converter(cls, f"Pilae{cls.__name__}", _refused_shape, _refused, options=options)


def _refused_shape(operator) -> None:
    """The first that skl2onnx asks for."""
    raise _refusal(operator.raw_operator)


def _refused(scope, operator, container) -> None:
    raise _refusal(operator.raw_operator)


def _transformer_shape(operator) -> None:
    from skl2onnx.common.data_types import FloatTensorType

    rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type = FloatTensorType([rows, int(operator.raw_operator._n_features_out)])


def _convert(build: Builder, scope, operator, container) -> None:
    from onnx import numpy_helper

    if _table(operator.raw_operator) is not None:
        raise ValueError(
            "This model was fitted on a table whose columns are not all numbers, and a pipeline gives it one matrix: "
            "export the model itself (to_onnx), which takes the columns."
        )
    graph = Graph("float64", scope.get_unique_variable_name)
    results = build(graph, operator.raw_operator, operator.inputs[0].full_name)
    for name, array in graph.constants.items():
        tensor = numpy_helper.from_array(array, name)
        container.add_initializer(name, tensor.data_type, list(array.shape), list(tensor.string_data) or tensor)
    for result, output in zip(results, operator.outputs, strict=True):
        graph.nodes.append(("Identity", [result.value], output.full_name, {}))
    for kind, names, out, attributes in graph.nodes:
        container.add_node(kind, names, [out], name=scope.get_unique_operator_name(kind), **attributes)
