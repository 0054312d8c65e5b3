"""ONNX: the file says what the model says."""

import numpy as np
import onnxruntime
import pytest
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_multilabel_classification,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers import close, evaluation
from pilae import SHLN, PILAEClassifier, PILAEImageClassifier, PILAERegressor, PILAutoencoder, StackedPILAE, export
from pilae._engine.activations import ACTIVATIONS, activate

X, y = load_iris(return_X_y=True)
X = X.astype(np.float32)
NAMES = np.array(["setosa", "<b>versi</b>", "virginica"])


def run(path, rows):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: np.asarray(rows, np.float32)})


def known(model, rows):
    """How exactly float32 knows probabilities: it rounds the rows, the features of the layers and those of the head."""
    stages = [(model.predict_proba, rows)]
    if hasattr(model.head_, "output"):
        head, output, targets = model.head_, model.head_.output, model.fitted_.targets
        answer = lambda A: targets.probabilities(A @ output.coef + output.intercept, head.calibrated(targets))  # noqa: E731
        F = np.asarray(model.network_(rows.astype(model.network_.dtype)), float)
        stages += [(lambda F: answer(head.features(F)), F), (answer, np.asarray(head.features(F), float))]
    return max((evaluation(*stage, "float32") for stage in stages), key=lambda found: found["condition"])


def check_classifier(model, path, rows, **options):
    model.to_onnx(path, **options)
    label, proba = run(path, rows)
    close(proba, model.predict_proba(rows), **known(model, rows))
    assert label.tolist() == model.predict(rows).tolist()


@pytest.mark.parametrize(
    "model",
    [
        PILAEClassifier(random_state=0),
        PILAEClassifier(
            width=[3, 3], layer=PILAutoencoder(encoder_ridge=1e-2), head=SHLN(width=20, encoder_ridge=1e-2)
        ),
        PILAEClassifier(head="ridge", depth=1),
        PILAEClassifier(head="softmax", depth=1),
        PILAEClassifier(depth=0, input_scaling="asinh", head=SHLN(direct_links=True, anchors="pairs")),
    ],
    ids=lambda model: repr(model)[:60],
)
@pytest.mark.parametrize(
    "labels", [y, NAMES[y], NAMES[y].astype(object), y > 0], ids=["numbers", "text", "objects", "two"]
)
def test_classifiers(model, labels, tmp_path):
    model = clone(model).set_params(dtype="float64")
    check_classifier(model.fit(X, labels), tmp_path / "m.onnx", X)


def data_of(load):
    rows, labels = load(return_X_y=True)
    return rows.astype(np.float32), labels


HEADS = [
    {"depth": 0, "head": SHLN(width=60)},
    {"depth": 1, "head": SHLN(width=60)},
    {"depth": 2, "head": SHLN(width=60)},
    {"depth": 2, "head": "ridge"},
    {"depth": 2, "head": "softmax"},
]


@pytest.mark.parametrize("load", [load_iris, load_digits, load_wine, load_breast_cancer])
@pytest.mark.parametrize("params", HEADS, ids=str)
def test_float64_models_agree_with_either_graph(load, params, tmp_path):
    rows, labels = data_of(load)
    model = PILAEClassifier(**params, random_state=0, dtype="float64").fit(rows, labels)
    check_classifier(model, tmp_path / "m.onnx", rows)
    check_classifier(model, tmp_path / "m.onnx", rows, dtype="float32")


@pytest.mark.parametrize("load", [load_digits, load_wine, load_breast_cancer])
@pytest.mark.parametrize("params", [HEADS[0], HEADS[1], HEADS[3]], ids=str)
def test_float32_models_agree_as_far_as_they_are_known(load, params, tmp_path):
    """They round the features of their layers, and the next layer magnifies that."""
    rows, labels = data_of(load)
    model = PILAEClassifier(**params, random_state=0).fit(rows, labels)
    for dtype in ("float64", "float32"):
        model.to_onnx(tmp_path / "m.onnx", dtype=dtype)
        proba = run(tmp_path / "m.onnx", rows)[1]
        close(proba, model.predict_proba(rows), **known(model, rows))


def test_graphs_agree_with_the_weights_of_a_float32_model(tmp_path):
    """Where a float32 model and its graph differ, it is the model's arithmetic that lost the digits."""
    rows, labels = data_of(load_digits)
    model = PILAEClassifier(depth=2, head="ridge", random_state=0).fit(rows, labels)
    H = rows.astype(float)
    for layer in model.layers_:
        H = activate(layer.activation, H @ layer.weights.astype(float))
    output = model.head_.output
    proba = model.head_.calibrated(model.fitted_.targets).of_classes(
        H @ output.coef.astype(float) + output.intercept.astype(float)
    )
    for dtype in ("float64", "float32"):
        model.to_onnx(tmp_path / "m.onnx", dtype=dtype)
        close(run(tmp_path / "m.onnx", rows)[1], proba, **known(model, rows))


def test_sizes(tmp_path):
    """Weights take as many bytes as the model's own; a float32 graph rounds the first of them alone."""
    rows, labels = load_digits(return_X_y=True)
    size = {}
    for held in ("float32", "float64"):
        model = PILAEClassifier(depth=0, ridge=1e-2, dtype=held, head=SHLN(width=300)).fit(rows, labels)
        for dtype in ("float32", "float64"):
            model.to_onnx(tmp_path / "m.onnx", dtype=dtype)
            size[held, dtype] = (tmp_path / "m.onnx").stat().st_size
    whole = size["float64", "float64"]
    assert max(size["float32", "float64"], size["float32", "float32"]) < 0.55 * whole
    assert size["float64", "float32"] < 0.65 * whole
    with pytest.raises(ValueError, match="'dtype' must be"):
        model.to_onnx(tmp_path / "half", dtype="float16")


def test_the_logistic_map_of_many_rows(tmp_path):
    data, target = load_digits(return_X_y=True)
    model = PILAEClassifier(depth=0, random_state=0, dtype="float64", head=SHLN(width=150)).fit(data, target)
    model.predict_proba(data[:2])
    assert model.head_.calibration.weights is not None
    check_classifier(model, tmp_path / "m.onnx", data.astype(np.float32))


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_every_activation(activation, tmp_path):
    model = PILAEClassifier(
        width=[3],
        dtype="float64",
        layer=PILAutoencoder(activation=activation),
        head=SHLN(width=20, activation=activation),
    )
    check_classifier(model.fit(X, y), tmp_path / "m.onnx", X)


def test_multilabel(tmp_path):
    rows, labels = make_multilabel_classification(200, 8, random_state=0)
    rows = rows.astype(np.float32)
    model = PILAEClassifier(depth=0, random_state=0, dtype="float64", head=SHLN(width=30)).fit(rows, labels)
    check_classifier(model, tmp_path / "m.onnx", rows)


@pytest.mark.parametrize("targets", [1, 3])
def test_regressors(targets, tmp_path):
    data, target = load_diabetes(return_X_y=True)
    data, target = data.astype(np.float32), target / target.std()
    Y = target if targets == 1 else np.stack([target, -target, target**2], axis=1)
    model = PILAERegressor(depth=1, random_state=0, dtype="float64", head=SHLN(width=40)).fit(data, Y)
    model.to_onnx(tmp_path / "m.onnx")
    [found] = run(tmp_path / "m.onnx", data)
    close(found, model.predict(data).reshape(len(data), -1), **evaluation(model.predict, data, "float32"))


@pytest.mark.parametrize(
    "model", [StackedPILAE(width=[30, 20], dtype="float64"), PILAutoencoder(width=16, dtype="float64")]
)
def test_transformers(model, tmp_path):
    data = load_digits().data.astype(np.float32)
    model.fit(data).to_onnx(tmp_path / "m.onnx")
    [found] = run(tmp_path / "m.onnx", data)
    close(found, model.transform(data), **evaluation(model.transform, data, "float32"))


@pytest.mark.parametrize("labels", [y, NAMES[y]], ids=["numbers", "text"])
def test_pipelines_convert_with_skl2onnx(labels, tmp_path):
    from skl2onnx import to_onnx

    export.register()
    pipe = make_pipeline(
        StandardScaler(), PILAEClassifier(depth=1, random_state=0, dtype="float64", head=SHLN(width=20))
    ).fit(X, labels)
    path = tmp_path / "m.onnx"
    path.write_bytes(to_onnx(pipe, X[:1], options={"zipmap": False}, target_opset=export.OPSET).SerializeToString())
    label, proba = run(path, X)
    close(proba, pipe.predict_proba(X), **evaluation(pipe.predict_proba, X, "float32"))
    assert label.tolist() == pipe.predict(X).tolist()


def test_regressors_and_transformers_convert_with_skl2onnx(tmp_path):
    from skl2onnx import to_onnx

    export.register()
    pipe = make_pipeline(StandardScaler(), StackedPILAE(width=[3], keep_decoders=False), Ridge()).fit(X, X[:, 0])
    path = tmp_path / "m.onnx"
    path.write_bytes(to_onnx(pipe, X[:1], target_opset=export.OPSET).SerializeToString())
    close(run(path, X)[0][:, 0], pipe.predict(X), **evaluation(pipe.predict, X, "float32"))
    pipe = make_pipeline(StandardScaler(), PILAERegressor(depth=0, head=SHLN(width=20))).fit(X, X[:, 0])
    path.write_bytes(to_onnx(pipe, X[:1], target_opset=export.OPSET).SerializeToString())
    close(run(path, X)[0][:, 0], pipe.predict(X), **evaluation(pipe.predict, X, "float32"))


def test_heads_that_are_not_covered_say_so(tmp_path):
    model = PILAEClassifier(depth=1, head=LogisticRegression(max_iter=500)).fit(X, y)
    with pytest.raises(ValueError, match="The head is a LogisticRegression, and ONNX export covers"):
        model.to_onnx(tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NotFittedError):
        PILAEClassifier().to_onnx(tmp_path / "m.onnx")


def test_rows_that_came_later_are_in_the_graph(tmp_path):
    model = PILAEClassifier(depth=0, head="ridge", ridge=0.1).fit(X[:75], y[:75])
    model.partial_fit(X[75:], y[75:])
    model.to_onnx(tmp_path / "m.onnx")
    labels, _ = run(tmp_path / "m.onnx", X)
    np.testing.assert_array_equal(labels, model.predict(X))
    with pytest.raises(ValueError, match="no rows in it"):
        model.fork().to_onnx(tmp_path / "n.onnx")


def test_what_cannot_be_written_is_told_in_a_sentence(tmp_path):
    digits = load_digits()
    pictures = PILAEImageClassifier(filters=4, patch=3, shift=0).fit(digits.images[:60], digits.target[:60])
    for model in (pictures, make_pipeline(pictures)):
        with pytest.raises(ValueError, match=f"A {type(model).__name__} is not written as ONNX"):
            export.to_onnx(model, tmp_path / "m.onnx")
