"""The command line, as a person would use it: from files with text, dates and gaps to predictions."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import pilae
from pilae import cli, tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Houses: numbers, text, categories, dates, gaps, a class and a price."""
    path = tmp_path_factory.mktemp("houses")
    rng = np.random.default_rng(0)
    n = 800
    size, town = rng.uniform(40, 200, n), rng.choice(["Ulm", "Aachen", "Köln"], n)
    built = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 25_000, n), unit="D")
    price = 3 * size + 100 * (town == "Köln") + rng.normal(0, 10, n)
    frame = pd.DataFrame({"size": size, "town": town, "built": built.strftime("%Y-%m-%d"), "price": price})
    frame["kind"] = np.where(price > 400, "large <b>", "small")
    frame["garden"] = rng.choice([True, False], n)
    frame.loc[::7, "size"] = np.nan
    frame.loc[::11, "town"] = None
    frame.to_csv(path / "houses.csv", index=False)
    frame.to_parquet(path / "houses.parquet")
    frame.drop(columns=["price", "kind"]).iloc[:20].to_csv(path / "new.csv", index=False)
    return path


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def prices(folder):
    out = folder / "prices.pilae"
    code = run(
        "fit", folder / "houses.csv", "--target", "price", "-o", out, "--columns", "size,town,built,garden", "--quiet"
    )
    assert code == 0
    return out


@pytest.fixture(scope="module")
def kinds(folder):
    out, report = folder / "kinds.pilae", folder / "kinds.html"
    options = ["--columns", "size,town,built,garden", "--quiet", "--report", report]
    assert run("fit", folder / "houses.parquet", "--target", "kind", "-o", out, *options) == 0
    return out


def test_numbers_are_predicted_with_intervals(folder, prices, capsys):
    out = folder / "out.csv"
    assert run("predict", prices, folder / "new.csv", "-o", out, "--interval", 0.9) == 0
    found = pd.read_csv(out)
    assert list(found.columns) == ["price", "lower", "upper"]
    assert len(found) == 20
    assert (found.lower < found.price).all()
    assert (found.price < found.upper).all()
    assert capsys.readouterr().out == f"20 rows predicted: {out}\n"
    assert run("evaluate", prices, folder / "houses.csv", "--json") == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["score"] > 0.8
    assert scores["rows"] == 800


def test_classes_are_predicted_with_probabilities(folder, kinds, capsys):
    assert run("predict", kinds, folder / "new.csv", "--proba") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "kind,kind=large <b>,kind=small"
    assert len(lines) == 21
    page = (folder / "kinds.html").read_text()
    assert "large &lt;b&gt;" in page
    assert "On test rows" in page


def test_fit_says_what_it_found(folder, capsys):
    out = folder / "again.pilae"
    assert run("fit", folder / "houses.csv", "--target", "kind", "-o", out, "--quiet", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["task"] == "classification"
    assert found["rows"] + found["held_out_rows"] == 800
    assert 40 < found["held_out_rows"] < 130
    assert found["held_out"] > 0.9  # the price is among the columns
    assert run("info", out) == 0
    text = capsys.readouterr().out
    assert "PILAEClassifier" in text
    assert "kind" in text


def test_standard_input_and_output(folder, prices, monkeypatch, capsys):
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO((folder / "new.csv").read_text()))
    assert run("predict", prices, "-") == 0
    piped = capsys.readouterr().out
    assert run("predict", prices, folder / "new.csv") == 0
    assert capsys.readouterr().out == piped


def test_streamed_files_give_the_same_model(folder, prices, monkeypatch):
    monkeypatch.setattr(cli, "IN_MEMORY_BYTES", 0)
    monkeypatch.setattr(tables, "PIECE_ROWS", 100)
    monkeypatch.setattr(tables.TableFile.pieces, "__defaults__", (100,))
    out = folder / "streamed.pilae"
    options = ["--columns", "size,town,built,garden", "--quiet"]
    assert run("fit", folder / "houses.csv", "--target", "price", "-o", out, *options) == 0
    again, once = pilae.load(out), pilae.load(prices)
    assert again.predict(pd.read_csv(folder / "new.csv")).shape == (20,)
    assert again["model"].loo_score_ == pytest.approx(once["model"].loo_score_, abs=1e-3)  # float32 there


def test_python_loads_the_encoder_too(folder, prices):
    """In a process that has not imported the command line."""
    code = "import sys, pandas, pilae; print(pilae.load(sys.argv[1]).predict(pandas.read_csv(sys.argv[2]))[0])"
    done = subprocess.run([sys.executable, "-c", code, prices, folder / "new.csv"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert run("predict", prices, folder / "new.csv", "-o", folder / "said.csv") == 0
    assert float(done.stdout) == pytest.approx(pd.read_csv(folder / "said.csv")["price"][0])


def test_arff_and_npz(tmp_path, capsys):
    X, y = load_iris(return_X_y=True)
    np.savez(tmp_path / "iris.npz", X=X, y=y)
    lines = ["@relation iris", *(f"@attribute x{k} numeric" for k in range(4)), "@attribute y {a,b,c}", "@data"]
    lines += [",".join(map(str, [*row, "abc"[label]])) for row, label in zip(X, y, strict=True)]
    (tmp_path / "iris.arff").write_text("\n".join(lines) + "\n")
    for name in ("iris.npz", "iris.arff"):
        assert run("fit", tmp_path / name, "--target", "y", "-o", tmp_path / "m.pilae", "--quiet", "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert found["task"] == "classification"
        assert found["leave_one_out"] > 0.93


def test_export_says_what_it_covers(folder, kinds, tmp_path, capsys):
    assert run("export", kinds, "--onnx", tmp_path / "m.onnx") == 0
    assert "numeric network" in capsys.readouterr().out
    assert (tmp_path / "m.onnx").stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "nowhere.csv", "--target", "y", "-o", "m"], "There is no file 'nowhere.csv'."),
        (["fit", "{houses}", "--target", "prise", "-o", "{out}"], "There is no column 'prise': the columns are 'size'"),
        (["fit", "{houses}", "--target", "price", "-o", "nowhere/m.pilae"], "There is no folder 'nowhere'"),
        (["fit", "{houses}", "--target", "price", "-o", "{out}", "--holdout", "2"], "--holdout must be"),
        (["fit", "{readme}", "--target", "price", "-o", "{out}"], "is not a table this reads"),
        (["predict", "{houses}", "{houses}"], "is not a model that pilae has saved"),
        (["predict", "{prices}", "{bad}"], "lacks the column 'size'"),
        (["predict", "{prices}", "{text}"], "Column 'size' held numbers when the model was fitted"),
        (["predict", "{prices}", "{houses}", "--proba"], "--proba is for classes"),
        (["predict", "{kinds}", "{houses}", "--interval", "0.9"], "--interval is for numbers"),
    ],
)
def test_errors_are_one_sentence(arguments, words, folder, prices, kinds, capsys):
    (folder / "bad.csv").write_text("a,b\n1,2\n")
    (folder / "text.csv").write_text("size,town,built,garden\nlarge,Ulm,1990-01-01,True\n")
    (folder / "read.me").write_text("hello")
    places = {
        "houses": folder / "houses.csv",
        "out": folder / "never.pilae",
        "readme": folder / "read.me",
        "prices": prices,
        "kinds": kinds,
        "bad": folder / "bad.csv",
        "text": folder / "text.csv",
    }
    assert run(*(argument.format(**places) for argument in arguments)) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("pilae: ")
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert not (folder / "never.pilae").exists()


def test_the_program_is_installed_and_helps():
    out = subprocess.run([sys.executable, "-m", "pilae.cli", "--help"], capture_output=True, text=True, check=True)
    assert "pilae fit houses.csv --target price" in out.stdout
    wrong = subprocess.run([sys.executable, "-m", "pilae.cli", "fit"], capture_output=True, text=True)
    assert wrong.returncode == 2


def test_the_demo_writes_a_report(tmp_path, capsys):
    assert run("demo", "-o", tmp_path / "demo.html", "--json") == 0
    assert json.loads(capsys.readouterr().out)["test"] > 0.95
    assert "<svg" in (tmp_path / "demo.html").read_text()


def test_what_a_target_means():
    task = tables.task_of
    assert task(pd.Series(["a", "b"])) == "classification"
    assert task(pd.Series([True, False])) == "classification"
    assert task(pd.Series([0, 1] * 50)) == "classification"
    assert task(pd.Series(np.arange(100))) == "regression"
    assert task(pd.Series([0.5, 1.0] * 50)) == "regression"


def test_held_out_rows_do_not_depend_on_the_pieces():
    whole = tables.held_out(0, 10_000, 0.1)
    parts = np.concatenate([tables.held_out(k, 100, 0.1) for k in range(0, 10_000, 100)])
    np.testing.assert_array_equal(whole, parts)
    assert 0.08 < whole.mean() < 0.12
