"""ONNX graphs from raw columns to the answer, row by row beside the model."""

import json

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from onnx import helper

import pilae
from helpers import close, evaluation
from pilae import SHLN, PILAEClassifier, PILAERegressor, cli
from pilae._data.columns import Columns
from pilae._data.dates import DATE_PARTS, DateColumn, date_parts
from pilae._data.tables import Table
from pilae.export import ML_OPSET, OPSET
from pilae.export.graph import FLOAT64, Graph
from pilae.export.tables import ML, inputs_of, rows_of

N = 400
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "size": RNG.uniform(40, 200, N).astype(np.float32).astype(float),
        "town": RNG.choice(["Ulm", "Aachen", "Wismar", "Bonn"], N),
        "lift": RNG.choice(["yes", "no"], N),
        "new": RNG.random(N) < 0.3,
        "built": pd.Timestamp("1950-01-01") + pd.to_timedelta(RNG.integers(0, 25_000 * 24, N), unit="h"),
        "wait": pd.to_timedelta(RNG.integers(0, 5000, N), unit="s"),
        "cast_3": RNG.integers(0, 9, N).astype(float),
        "label": RNG.choice(["a", "b", "c"], N),
        "empty": pd.Series([None] * N, dtype="object"),
    }
)
FRAME.loc[::7, "size"] = np.nan
FRAME.loc[::11, ["town", "lift"]] = None
FRAME.loc[::13, "built"] = pd.NaT
FRAME["new"] = FRAME["new"].astype("object").mask(np.arange(N) % 17 == 0, None)
PRICE = (
    FRAME["size"].fillna(300)
    + 90 * (FRAME["town"] == "Ulm")
    + 60 * (FRAME["lift"] == "yes")
    + 5 * FRAME["built"].dt.month.fillna(20)
    + RNG.normal(0, 5, N)
).to_numpy()
KIND = np.where(np.median(PRICE) < PRICE, "dear", "cheap")
ROWS = FRAME.copy()
ROWS.loc[:5, "town"], ROWS.loc[:3, "lift"] = "Nowhere", "perhaps"


def feeds(frame):
    """The columns of a table as a graph takes them."""
    given = {}
    for name, column in frame.items():
        if name == "empty":
            continue
        key = f"column {name}" if name == "label" else name
        if column.dtype.kind == "M":
            values = column.to_numpy("datetime64[s]").astype(np.int64)
        elif column.dtype.kind == "m":
            values = column.dt.total_seconds().to_numpy(np.float32)
        elif column.dtype.kind == "f":
            values = column.to_numpy(np.float32)
        else:
            values = np.array(["" if gap else str(value) for value, gap in zip(column, column.isna(), strict=True)])
            values = values.astype(object)
        given[key] = values[:, None]
    return given


def answers(path, frame):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    whole = dict(zip(outputs, session.run(None, feeds(frame)), strict=True))
    alone = session.run(None, feeds(frame[5:6]))
    for name, value in zip(outputs, alone, strict=True):
        if whole[name].dtype.kind == "f":
            close(value[0], whole[name][5], dtype=whole[name].dtype)
        else:
            assert value[0] == whole[name][5]
    return whole


def known(model, method, frame):
    """How far what is asked of float32 numbers may be from what is asked of float64."""

    def ask(x):
        return getattr(model, method)(frame.assign(size=x[:, 0], cast_3=x[:, 1]))

    return evaluation(ask, frame[["size", "cast_3"]].to_numpy(), "float32")


@pytest.mark.parametrize("settings", [{"depth": 0, "head": SHLN(width=30)}, {"width": [8], "head": "ridge"}, {}])
@pytest.mark.filterwarnings("ignore:.*categories that fit did not see")
def test_classes_from_raw_columns(settings, tmp_path):
    model = PILAEClassifier(random_state=0, **settings).fit(FRAME, KIND)
    model.to_onnx(tmp_path / "m.onnx")
    found = answers(tmp_path / "m.onnx", ROWS)
    close(found["probabilities"], model.predict_proba(ROWS), **known(model, "predict_proba", ROWS))
    sure = np.abs(model.predict_proba(ROWS)[:, 0] - 0.5) > 1e-4
    np.testing.assert_array_equal(found["label"][sure], model.predict(ROWS)[sure])


@pytest.mark.filterwarnings("ignore:.*categories that fit did not see")
def test_numbers_from_raw_columns(tmp_path):
    model = PILAERegressor(random_state=0, categorical_features=["cast_3"]).fit(FRAME, PRICE)
    model.to_onnx(tmp_path / "m.onnx", dtype="float32")
    made = onnx.load(tmp_path / "m.onnx")
    assert [each.name for each in made.graph.input] == [
        *("size", "town", "lift", "new", "built", "wait", "cast_3", "column label")
    ]
    assert {each.domain for each in made.graph.node} == {"", "ai.onnx.ml"}
    close(answers(tmp_path / "m.onnx", ROWS)["prediction"][:, 0], model.predict(ROWS), **known(model, "predict", ROWS))


@pytest.mark.parametrize("target", ["price", "kind"])
@pytest.mark.filterwarnings("ignore:.*categories that fit did not see")
def test_a_model_of_the_command_line(target, tmp_path, capsys):
    frame = FRAME.drop(columns=["wait", "empty"]).astype({"cast_3": int})
    frame.assign(price=PRICE, kind=KIND).to_csv(tmp_path / "t.csv", index=False)
    used = ["--exclude", "kind" if target == "price" else "price", "--quiet", "--fast"]
    out = str(tmp_path / "m.pilae")
    assert cli.main(["fit", str(tmp_path / "t.csv"), "--target", target, "-o", out, *used]) == 0
    capsys.readouterr()
    assert cli.main(["export", out, "--onnx", str(tmp_path / "m.onnx"), "--json"]) == 0
    inputs = json.loads(capsys.readouterr().out)["inputs"]
    assert inputs["town"] == inputs["new"] == "string"
    assert inputs["built"] == "int64, seconds since 1970"
    rows = ROWS.drop(columns=["wait", "empty"])
    model, found = pilae.load(out), answers(tmp_path / "m.onnx", rows)
    if target == "price":
        close(found["prediction"][:, 0], model.predict(rows), **known(model, "predict", rows))
    else:
        close(found["probabilities"], model.predict_proba(rows), **known(model, "predict_proba", rows))


def test_numbers_alone_are_columns_too_on_the_command_line(tmp_path):
    frame = FRAME[["size", "cast_3"]]
    frame.assign(price=PRICE).to_csv(tmp_path / "t.csv", index=False)
    out = str(tmp_path / "m.pilae")
    assert cli.main(["fit", str(tmp_path / "t.csv"), "--target", "price", "-o", out, "--quiet", "--fast"]) == 0
    assert cli.main(["export", out, "--onnx", str(tmp_path / "m.onnx")]) == 0
    model = pilae.load(out)
    close(
        answers(tmp_path / "m.onnx", frame)["prediction"][:, 0], model.predict(frame), **known(model, "predict", frame)
    )


def test_free_text_is_refused_by_name(tmp_path):
    frame = FRAME[["size"]].assign(note=[f"number {k} of {k % 7}" for k in range(N)])
    model = PILAERegressor(depth=0, head="ridge").fit(frame, PRICE)
    with pytest.raises(ValueError, match="Column 'note' holds free text, whose pieces an ONNX graph cannot look up"):
        model.to_onnx(tmp_path / "m.onnx")
    both = frame.assign(again=frame["note"])
    with pytest.raises(ValueError, match=r"Columns 'note', 'again' hold free text, .* a model without them"):
        PILAERegressor(depth=0, head="ridge").fit(both, PRICE).to_onnx(tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_dates_of_ten_thousand_years(tmp_path):
    """Every part of a date as NumPy has it, from year 1 to 9999."""
    first, last = (np.datetime64(day, "s").astype(np.int64) for day in ("0001-01-01", "9999-12-31"))
    seconds = np.r_[RNG.integers(first, last, 20_000), first, last, 0, -1, 951_782_400, np.iinfo(np.int64).min]
    graph = Graph("float64")
    columns = Columns(1, np.array(["when"], dtype=object), Table([DateColumn("when", None, list(DATE_PARTS))]))
    inputs = inputs_of(columns)
    value = rows_of(graph, columns.table, inputs)
    made = helper.make_model(
        helper.make_graph(
            [helper.make_node(kind, names, [out], **more) for kind, names, out, more in graph.nodes],
            "dates",
            [helper.make_tensor_value_info(each.name, each.dtype, [None, 1]) for each in inputs],
            [helper.make_tensor_value_info(value, FLOAT64, [None, len(DATE_PARTS)])],
            [onnx.numpy_helper.from_array(array, name) for name, array in graph.constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)],
        ir_version=10,
    )
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    [found] = session.run(None, {"when": seconds[:, None]})
    times = seconds.astype("datetime64[s]").astype("datetime64[us]")
    np.testing.assert_array_equal(found, np.stack(list(date_parts(times).values()), axis=1))
