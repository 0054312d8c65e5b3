"""The command line, as a person would use it: from files with text, dates and gaps to predictions."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import balanced_accuracy_score

import pilae
from helpers import close, rounding
from pilae import cli
from pilae._tables import files, frames
from pilae._tables.remarks import is_id
from pilae.cli import report as cli_report


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
        "fit",
        folder / "houses.csv",
        "--target",
        "price",
        "-o",
        out,
        "--columns",
        "size,town,built,garden",
        *("--quiet", "--statistics"),
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


def test_rows_far_outside_are_counted_and_named(folder, prices, capsys):
    strange, out = pd.read_csv(folder / "new.csv"), folder / "far.csv"
    strange.loc[3, "size"] = 1e6
    strange.to_csv(folder / "strange.csv", index=False)
    assert run("predict", prices, folder / "strange.csv", "-o", out, "--far") == 0
    assert pd.read_csv(out)["far"].tolist() == [number == 3 for number in range(20)]
    assert "1 of 20 rows lie far outside" in capsys.readouterr().err


def test_classes_are_predicted_with_probabilities(folder, kinds, capsys):
    assert run("predict", kinds, folder / "new.csv", "--proba") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "kind,kind=large <b>,kind=small"
    assert len(lines) == 21
    page = (folder / "kinds.html").read_text()
    assert "large &lt;b&gt;" in page
    assert "Where it is wrong" in page


def test_unknown_categories_are_counted_once(folder, prices, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(files.TableFile.pieces, "__defaults__", (7,))
    new = pd.read_csv(folder / "new.csv")
    new.assign(town=["Bern"] * 12 + ["Ulm"] * 8).to_csv(tmp_path / "new.csv", index=False)
    assert run("predict", prices, tmp_path / "new.csv", "-o", tmp_path / "out.csv", "--interval", "0.9") == 0
    said = capsys.readouterr().err
    assert said.count("categories that fit did not see") == 1
    assert "12 values in column 'town' are categories" in said


def test_gaps_in_a_column_that_had_none_and_dates_that_are_none_are_said(folder, prices, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(files.TableFile.pieces, "__defaults__", (7,))
    old = pd.read_csv(folder / "houses.csv")[:20]
    old.assign(garden=None, built=["foo", "31.12.1999"] * 10).to_csv(tmp_path / "new.csv", index=False)
    for command in (
        ["predict", prices, tmp_path / "new.csv", "-o", tmp_path / "o"],
        ["evaluate", prices, tmp_path / "new.csv"],
    ):
        assert run(*command) == 0
        said = capsys.readouterr().err.splitlines()
        assert said[:2] == [
            "pilae: 20 values in column 'built' cannot be read as they were in fit: they count as gaps.",
            "pilae: Column 'garden' had no gap in fit and is now missing in 20 of 20 rows: answers, also intervals, "
            "are those of an average value there.",
        ]


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


def standard_input(data):
    return io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))


def test_standard_input_and_output(folder, prices, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", standard_input((folder / "new.csv").read_bytes()))
    assert run("predict", prices, "-") == 0
    piped = capsys.readouterr().out
    assert run("predict", prices, folder / "new.csv") == 0
    assert capsys.readouterr().out == piped


def test_the_separator_of_standard_input_is_found_once(folder, prices, monkeypatch, capsys):
    """It is streamed: what is left when its header has been read says nothing about it."""
    pd.read_csv(folder / "new.csv").to_csv(folder / "semicolons.csv", sep=";", index=False)
    assert run("predict", prices, folder / "semicolons.csv") == 0
    said = capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", standard_input((folder / "semicolons.csv").read_bytes()))
    assert run("predict", prices, "-") == 0
    assert capsys.readouterr().out == said


def test_streamed_files_give_the_same_model(folder, prices, monkeypatch):
    monkeypatch.setattr("pilae.cli.fit.IN_MEMORY_BYTES", 0)
    monkeypatch.setattr(files, "PIECE_ROWS", 100)
    monkeypatch.setattr(files.TableFile.pieces, "__defaults__", (100,))
    out = folder / "streamed.pilae"
    options = ["--columns", "size,town,built,garden", "--quiet"]
    assert run("fit", folder / "houses.csv", "--target", "price", "-o", out, *options) == 0
    again, once = pilae.load(out), pilae.load(prices)
    assert again.predict(pd.read_csv(folder / "new.csv")).shape == (20,)
    assert again["model"].loo_score_ == pytest.approx(once["model"].loo_score_, abs=1e-3)  # float32 there


def test_python_loads_the_columns_too(folder, prices):
    """In a process that has not imported the command line."""
    code = "import sys, pandas, pilae; print(pilae.load(sys.argv[1]).predict(pandas.read_csv(sys.argv[2]))[0])"
    done = subprocess.run([sys.executable, "-c", code, prices, folder / "new.csv"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert run("predict", prices, folder / "new.csv", "-o", folder / "said.csv") == 0
    # the row alone, and among others
    said = pd.read_csv(folder / "said.csv")["price"][0]
    close(float(done.stdout), said, **rounding(pilae.load(prices)["model"]))


def test_python_and_the_command_say_the_same_of_a_file_as_pandas_reads_it(tmp_path, capsys):
    """Blanks around cells and names, and words for nothing, which pandas keeps."""
    rng = np.random.default_rng(0)
    x, kind = rng.normal(size=300), rng.choice(["WD ", "WD", "?", "New "], 300)
    y = x + 3 * (kind == "New ") - 2 * (kind == "?") + 0.1 * rng.normal(size=300)
    frame = pd.DataFrame({" x": np.where(x > 2, "?", x.astype(str)), "kind": kind, "y": y})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert run("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "t.pilae", "--quiet", "--fast") == 0
    assert run("predict", tmp_path / "t.pilae", tmp_path / "t.csv", "-o", tmp_path / "out.csv") == 0
    assert "categories" not in capsys.readouterr().err
    model = pilae.load(tmp_path / "t.pilae")
    assert model["model"].fitted_.columns.became()[1].startswith("2 categories")
    predicted = model.predict(pd.read_csv(tmp_path / "t.csv"))
    close(pd.read_csv(tmp_path / "out.csv")["y"].to_numpy(), predicted, terms=300)


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
    assert "  town: string\n  built: int64, seconds since 1970" in capsys.readouterr().out
    assert (tmp_path / "m.onnx").stat().st_size > 300


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "nowhere.csv", "--target", "y", "-o", "m"], "There is no file 'nowhere.csv'."),
        (["fit", "{houses}", "--target", "prise", "-o", "{out}"], "There is no column 'prise': the columns are 'size'"),
        (["fit", "{houses}", "--target", "price", "-o", "nowhere/m.pilae"], "There is no folder 'nowhere'"),
        (["fit", "{houses}", "--target", "price", "-o", "{out}", "--holdout", "2"], "--holdout must be"),
        (["fit", "{readme}", "--target", "price", "-o", "{out}"], "is not a table this reads"),
        (["predict", "{houses}", "{houses}"], "is not a model that pilae has saved"),
        (["predict", "{prices}", "{bad}"], "lacks the columns 'size', 'town'"),
        (["predict", "{prices}", "{text}"], "text.csv holds numbers, but row 1 has 'large'"),
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


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["fit", "--help"]])
def test_help_needs_nothing_else(arguments):
    code = (
        "import sys; from pilae import cli\ntry: cli.main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "print([name for name in ('numpy', 'sklearn', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_who_has_no_pandas_is_told_what_to_install(folder, prices, command):
    code = "import sys; sys.modules['pandas'] = None; from pilae import cli; sys.exit(cli.main(sys.argv[1:]))"
    call = [sys.executable, "-c", code, command, prices, folder / "new.csv"]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode
    assert "pip install 'pilae[table]'" in done.stderr


def test_a_table_is_fitted_and_predicted_without_skrub_and_skops(folder, prices):
    code = (
        "import sys; from pilae import cli; cli.main(sys.argv[1:]); "
        "print([name for name in ('skrub', 'skops', 'matplotlib', 'onnx') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "predict", prices, folder / "new.csv"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_demo_writes_a_report(tmp_path, capsys):
    assert run("demo", "-o", tmp_path / "demo.html", "--json") == 0
    assert json.loads(capsys.readouterr().out)["test"] > 0.95
    assert "<svg" in (tmp_path / "demo.html").read_text()


def test_a_report_says_what_the_commands_say_of_the_rows_it_was_given(folder, prices, capsys, tmp_path):
    rows = pd.read_csv(folder / "houses.csv")
    rows.loc[::3, "built"] = None
    rows.loc[5, "price"] = None
    rows.to_csv(tmp_path / "sold.csv", index=False)
    assert run("evaluate", prices, tmp_path / "sold.csv", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert run("report", prices, tmp_path / "sold.csv", "-o", tmp_path / "r.json") == 0
    found = json.loads((tmp_path / "r.json").read_text())
    assert [found["test"][key] for key in ("rows", "score")] == [told["rows"], told["score"]] == [799, told["score"]]
    columns = {each["name"]: each for each in found["table"]["columns"]}
    assert columns["built"]["missing_where_trained"] == 0 < columns["built"]["missing"]
    assert found["shuffled"][0]["column"] == "size"
    assert {each["column"] for each in found["shuffled"]} == {"size", "town", "built", "garden"}
    assert found["test"]["worst_values"]["columns"][0] == "size"


def test_a_report_of_many_rows_shows_the_first_and_scores_all(folder, prices, monkeypatch, tmp_path):
    monkeypatch.setattr(cli_report, "REPORT_ROWS", 100)
    monkeypatch.setattr(files.TableFile.pieces, "__defaults__", (100,))
    assert run("report", prices, folder / "houses.csv", "-o", tmp_path / "r.json") == 0
    found = json.loads((tmp_path / "r.json").read_text())["test"]
    assert found["shown_rows"] < found["rows"] == 800


def test_what_a_target_means():
    task = frames.task_of
    assert task(pd.Series(["a", "b"])) == "classification"
    assert task(pd.Series([True, False])) == "classification"
    assert task(pd.Series([0, 1] * 50)) == "classification"
    assert task(pd.Series(np.arange(100))) == "regression"
    assert task(pd.Series([0.5, 1.0] * 50)) == "regression"


def test_held_out_rows_do_not_depend_on_the_pieces():
    whole = files.held_out(0, 10_000, 0.1)
    parts = np.concatenate([files.held_out(k, 100, 0.1) for k in range(0, 10_000, 100)])
    np.testing.assert_array_equal(whole, parts)
    assert 0.08 < whole.mean() < 0.12


# -------------------------------------------------------------------------------- what people's files are like


def wrote(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def table(n=120, separator=",", names=("a", "b", "y")):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=n), rng.normal(size=n)
    rows = [f"{u:.3f}{separator}{v:.3f}{separator}{'yes' if u + v > 0 else 'no'}" for u, v in zip(a, b, strict=True)]
    return "\n".join([separator.join(names), *rows]) + "\n"


def fitted(path, capsys, *options, target="y"):
    """What `pilae fit --json` says."""
    out = path.with_suffix(".pilae")
    assert run("fit", path, "--target", target, "-o", out, "--quiet", "--json", *options) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_separators_are_found(tmp_path, capsys, separator):
    assert fitted(wrote(tmp_path / "t.csv", table(separator=separator)), capsys)["columns"] == 2


def test_encodings_and_decimals(tmp_path, capsys):
    text = table(separator=";", names=("größe", "b", "y"))
    assert fitted(wrote(tmp_path / "bom.csv", text, "utf-8-sig"), capsys)["columns"] == 2
    assert fitted(wrote(tmp_path / "u16.csv", text, "utf-16"), capsys)["columns"] == 2
    latin = wrote(tmp_path / "latin.csv", text, "latin-1")
    assert fitted(latin, capsys, "--encoding", "latin-1")["columns"] == 2
    assert run("fit", latin, "--target", "y", "-o", tmp_path / "m.pilae", "--quiet") == 1
    assert "--encoding" in capsys.readouterr().err
    commas = wrote(tmp_path / "commas.csv", text.replace(".", ","))
    assert fitted(commas, capsys, "--decimal", ",")["leave_one_out"] > 0.9


def numbers(n=200, separator=",", decimal="."):
    """A table of numbers, whose target is one too."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    rows = [f"{u:.3f}{separator}{v:.3f}" for u, v in zip(x, 3 * x + rng.normal(0, 0.1, n), strict=True)]
    return f"x{separator}y\n" + "\n".join(rows).replace(".", decimal) + "\n"


def test_decimal_commas_are_found(tmp_path, capsys):
    """They used to make a classifier of as many classes as there are rows."""
    points = fitted(wrote(tmp_path / "points.csv", numbers()), capsys)
    commas = fitted(wrote(tmp_path / "commas.csv", numbers(separator=";", decimal=",")), capsys)
    assert commas["task"] == "regression"
    assert commas["leave_one_out"] == points["leave_one_out"]
    assert commas["remarks"] == [f"{tmp_path / 'commas.csv'} is read with decimal commas (--decimal . says otherwise)."]
    assert run("predict", tmp_path / "points.pilae", tmp_path / "points.csv") == 0
    said = capsys.readouterr().out
    assert run("predict", tmp_path / "points.pilae", tmp_path / "commas.csv") == 0
    assert capsys.readouterr().out == said


def test_a_target_of_numbers_with_a_word_in_it_says_where(tmp_path, capsys):
    lines = numbers().splitlines()
    lines[17] = "1.5,?"
    path = wrote(tmp_path / "t.csv", "\n".join(lines) + "\n")
    for options in ([], ["--task", "regression"]):
        assert run("fit", path, "--target", "y", "-o", tmp_path / "m.pilae", "--quiet", *options) == 1
        error = capsys.readouterr().err
        assert "row 17 has '?': mend it, or leave it empty to leave the row out" in error
        assert ("--task classification takes all of them" in error) == (not options)


@pytest.mark.filterwarnings("ignore:Column:pilae._base.warn.StrangeRows")
def test_a_word_in_a_column_of_numbers_is_a_gap_and_said(tmp_path, capsys):
    lines = numbers().splitlines()
    lines[30] = "unknown,0.5"
    path = wrote(tmp_path / "t.csv", "\n".join(lines) + "\n")
    found = fitted(path, capsys)
    assert found["leave_one_out"] > 0.9
    sentence = f"Column 'x' of {path} holds numbers, but row 30 has 'unknown': such words, in 1 row, are taken as gaps."
    assert found["remarks"] == [sentence]
    new = wrote(tmp_path / "new.csv", "x\nunknown\n\n1.5\n")
    assert run("predict", tmp_path / "t.pilae", new) == 0
    predicted = capsys.readouterr().out.splitlines()
    model = pilae.load(tmp_path / "t.pilae")
    again = model.predict(pd.DataFrame({"x": ["unknown", "1.5"]}))
    close(again, np.array(predicted[1:], dtype=float), terms=200)
    other = wrote(tmp_path / "other.csv", "x\n1.5\nnobody knows\n")
    assert run("predict", tmp_path / "t.pilae", other) == 1
    assert (
        "other.csv holds numbers, but row 2 has 'nobody knows': mend it, or leave it empty" in capsys.readouterr().err
    )


@pytest.mark.parametrize("written", ["{:,.2f}", "${:,.2f}", "{:,.1f} EUR"])
def test_targets_and_columns_that_are_written_out_are_numbers(tmp_path, capsys, written):
    rng = np.random.default_rng(0)
    x = rng.uniform(100, 9000, 300)
    y = 3 * x + rng.normal(0, 10, 300)
    plain = pd.DataFrame({"x": x.round(2), "y": y.round(2)})
    frame = pd.DataFrame({"x": [f"{v:.2f}%" for v in x], "y": [written.format(v) for v in y]})
    frame.loc[5, "y"] = "NA"
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = fitted(tmp_path / "t.csv", capsys, "--fast")
    assert found["task"] == "regression"
    assert found["held_out"] > 0.99
    assert found["rows_without_target"] == 1
    assert found["remarks"] == []
    assert run("evaluate", tmp_path / "t.pilae", tmp_path / "t.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["score"] > 0.99
    predicted = pilae.load(tmp_path / "t.pilae").predict(frame)
    np.testing.assert_allclose(predicted, plain["y"], rtol=0.1, atol=100)
    frame.loc[9, "y"] = "many"
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert run("evaluate", tmp_path / "t.pilae", tmp_path / "t.csv") == 1
    assert "row 10 has 'many'" in capsys.readouterr().err
    assert run("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.pilae", "--quiet") == 1
    assert "too many to be classes, and" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["1.5", "7", "a"])
def test_a_target_of_one_value_is_refused(tmp_path, capsys, value):
    path = wrote(tmp_path / "t.csv", "x,y\n" + "".join(f"{k},{value}\n" for k in range(40)))
    assert run("fit", path, "--target", "y", "--quiet", "-o", tmp_path / "m.pilae") == 1
    assert f"The target 'y' is {value} in every row: there is nothing to learn from it." in capsys.readouterr().err


def test_a_model_no_better_than_guessing_is_said(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=400), "y": rng.normal(size=400), "rating": rng.integers(1, 11, 400)})
    frame["good"] = 2 * frame["x"] + 0.1 * rng.normal(size=400)
    frame.to_csv(tmp_path / "t.csv", index=False)
    said = {
        target: fitted(tmp_path / "t.csv", capsys, "--columns", "x", target=target)["remarks"]
        for target in ("y", "rating", "good")
    }
    assert said["y"] == [
        "The model is not surely better than guessing the mean (R2 0.0000) by leave-one-out and on the held-out rows."
    ]
    assert said["rating"][-1].startswith(
        "The model is not surely better than guessing the most frequent class (accuracy 0.1"
    )
    assert said["good"] == []


def test_a_linear_model_is_one(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    pd.DataFrame({"x": x, "y": 2 * x}).to_csv(tmp_path / "t.csv", index=False)
    assert fitted(tmp_path / "t.csv", capsys, "--linear")["held_out"] > 0.9999
    model = pilae.load(tmp_path / "t.pilae")["model"]
    assert (model.depth, model.head) == (0, "ridge")
    assert run("fit", tmp_path / "t.csv", "--target", "y", "--linear", "--fast", "-o", tmp_path / "m.pilae") == 1
    assert "--linear is none: choose one" in capsys.readouterr().err


def test_a_word_among_numbers_is_a_gap_for_a_model_that_has_not_met_it(tmp_path, capsys):
    fitted(wrote(tmp_path / "t.csv", numbers()), capsys, "--fast")
    lines = [line.split(",")[0] for line in numbers().splitlines()]
    lines[17] = "unknown"
    new = wrote(tmp_path / "new.csv", "\n".join(lines) + "\n")
    assert run("predict", tmp_path / "t.pilae", new, "-o", tmp_path / "out.csv") == 0
    sentence = f"Column 'x' of {new} holds numbers, but row 17 has 'unknown': such words, in 1 row, are taken as gaps."
    assert sentence in capsys.readouterr().err


def test_words_for_one_and_for_many(tmp_path, capsys):
    path = wrote(tmp_path / "t.csv", numbers())
    assert run("fit", path, "--target", "y", "-o", tmp_path / "t.pilae", "--quiet", "--budget", "0") == 0
    out = capsys.readouterr().out
    assert "1 network tried, then" in out
    assert "rows, 1 column, " in out


def test_info_says_how_good_and_how_many(tmp_path, capsys):
    found = fitted(wrote(tmp_path / "t.csv", numbers()), capsys, "--fast")
    assert run("info", tmp_path / "t.pilae") == 0
    out = capsys.readouterr().out
    assert f"rows           {found['rows']}\n" in out
    assert f"held out       {found['held_out']:.4f}\n" in out
    assert "versions       python 3." in out


def test_a_report_is_named_after_its_model(tmp_path, capsys, monkeypatch):
    fitted(wrote(tmp_path / "t.csv", numbers()), capsys, "--fast")
    monkeypatch.chdir(tmp_path)
    assert run("report", "t.pilae", "t.csv") == 0
    assert (tmp_path / "t.html").exists()


def test_blanks_between_columns_are_a_way_out(tmp_path, capsys):
    path = wrote(tmp_path / "t.txt", numbers().replace(",", " "))
    assert run("fit", path, "--target", "y", "-o", tmp_path / "t.pilae", "--quiet") == 1
    assert (
        "the columns are 'x y' (where blanks stand between columns, say so with --separator ' ')"
        in capsys.readouterr().err
    )


def test_spaces_after_separators_do_not_name_columns(tmp_path, capsys):
    path = wrote(tmp_path / "t.csv", table(separator=", "))
    assert fitted(path, capsys, "--columns", "a, b")["columns"] == 2


def test_words_for_nothing_are_classes_in_the_target_and_gaps_elsewhere(tmp_path, capsys):
    lines = table().replace(",no", ",None").splitlines()
    lines[3] = "NA," + lines[3].split(",", 1)[1]
    lines[5] = lines[5].rsplit(",", 1)[0] + ","
    found = fitted(wrote(tmp_path / "t.csv", "\n".join(lines) + "\n"), capsys)
    assert found["rows"] + found["held_out_rows"] == 119
    assert found["rows_without_target"] == 1
    assert set(pilae.load(tmp_path / "t.pilae")["model"].classes_) == {"None", "yes"}


def test_times_with_zones(tmp_path, capsys):
    rng = np.random.default_rng(0)
    day = rng.integers(1, 28, 200)
    times = [f"2020-01-{d:02d}T{h:02d}:00:00Z" for d, h in zip(day, rng.integers(0, 24, 200), strict=True)]
    frame = pd.DataFrame({"when": times, "x": rng.normal(size=200), "y": 3.0 * day + 0.1 * rng.normal(size=200)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.assign(when=pd.to_datetime(frame["when"])).to_parquet(tmp_path / "t.parquet")
    assert fitted(tmp_path / "t.csv", capsys)["leave_one_out"] > 0.95
    frame.drop(columns="y").to_csv(tmp_path / "new.csv", index=False)
    assert run("predict", tmp_path / "t.pilae", tmp_path / "new.csv", "-o", tmp_path / "csv.csv") == 0
    capsys.readouterr()
    assert fitted(tmp_path / "t.parquet", capsys, "--statistics")["leave_one_out"] > 0.95
    assert run("predict", tmp_path / "t.pilae", tmp_path / "t.parquet", "-o", tmp_path / "parquet.csv") == 0
    a, b = (pd.read_csv(tmp_path / f"{name}.csv")["y"] for name in ("csv", "parquet"))
    close(a, b, **rounding(pilae.load(tmp_path / "t.pilae")["model"]))


def test_exact_decimals_in_parquet_are_numbers(tmp_path, capsys):
    import decimal

    rng = np.random.default_rng(0)
    x = rng.normal(size=150)
    price = [decimal.Decimal(f"{3 * v + 0.25:.2f}") for v in x]
    pd.DataFrame({"x": x, "price": price}).to_parquet(tmp_path / "t.parquet")
    found = fitted(tmp_path / "t.parquet", capsys, target="price")
    assert found["task"] == "regression"
    assert found["leave_one_out"] > 0.99


def test_the_same_seed_gives_the_same_model(tmp_path, capsys):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh"), 9)) for _ in range(200)]
    pd.DataFrame({"text": words, "x": rng.normal(size=200), "y": [w.count("a") for w in words]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    both = [fitted(tmp_path / "t.csv", capsys, "--task", "regression")["leave_one_out"] for _ in range(2)]
    assert both[0] == both[1]


def test_held_out_rows_follow_no_pattern():
    """Every slot of a cycle is held out about as often as any other."""
    out = files.held_out(0, 144 * 300, 0.1).reshape(300, 144)
    assert 0.09 < out.mean() < 0.11
    assert out.mean(axis=0).min() > 0.02
    assert out.mean(axis=0).max() < 0.22
    np.testing.assert_array_equal(files.held_out(500, 100, 0.1), files.held_out(0, 600, 0.1)[500:])


def test_standard_output_takes_models_reports_and_networks(folder, prices, capfdbinary):
    out = folder / "piped.pilae"
    assert run("fit", folder / "houses.csv", "--target", "kind", "-o", "-", "--quiet") == 0
    out.write_bytes(capfdbinary.readouterr().out)
    assert pilae.load(out)["model"].loo_score_ > 0.5
    assert run("report", prices, folder / "houses.csv", "-o", "-") == 0
    assert capfdbinary.readouterr().out.lower().startswith(b"<!doctype html>")
    assert run("export", prices, "--onnx", "-") == 0
    assert len(capfdbinary.readouterr().out) > 300


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fit", "{t}", "--target", "y", "-o", "{d}"], "is a folder"),
        (["fit", "{t}", "--target", "y", "-o", "{t}"], "would take the place of the file that is read"),
        (["fit", "{t}", "--target", "y", "-o", "{d}/m.pilae", "--report", "{d}/r.pdf"], r"\.pdf"),
        (["fit", "{t}", "--target", "y", "-o", "/proc/m.pilae"], "Cannot write"),
        (["fit", "{t}", "--target", "y", "-o", "{d}/m.pilae", "--task", "regression"], "needs numbers"),
        (["fit", "{t}", "--target", "z", "-o", "{d}/m.pilae"], "There is no column 'z'"),
        (["fit", "{inf}", "--target", "y", "-o", "{d}/m.pilae"], "Column 'a' holds infinity"),
        (["fit", "{dates}", "--target", "day", "-o", "{d}/m.pilae"], "too many to be classes"),
        (["fit", "{empty}", "--target", "y", "-o", "{d}/m.pilae"], "is empty"),
        (["fit", "{one}", "--target", "y", "-o", "{d}/m.pilae"], "The target 'y' is yes in every row"),
        (["fit", "{late}", "--target", "y", "-o", "{d}/m.pilae"], "Column 'a' .* row 110001 has 'oops'"),
        (["fit", "{odd}", "--target", "y", "-o", "{d}/m.pilae"], "also holds 0.5: fit with --task regression"),
        (["fit", "{nested}", "--target", "y", "-o", "{d}/m.pilae"], "cannot be read as ARFF"),
        (["fit", "{npz}", "--target", "y", "-o", "{d}/m.pilae"], "expected X"),
        (["predict", "{m}", "{t}", "--proba", "-o", "{d}/p.parquet"], "as CSV"),
        (["predict", "{m}", "{t}", "--json"], "name a file with -o"),
        (["evaluate", "{m}", "{nothing}"], "no row with a target"),
    ],
)
def test_what_is_wrong_with_files_is_said_in_one_sentence(tmp_path, capsys, arguments, sentence):
    text = table()
    files = {
        "t": wrote(tmp_path / "t.csv", text),
        "inf": wrote(tmp_path / "inf.csv", text.replace("\n", "\ninf,1,yes\n", 1)),
        "dates": wrote(tmp_path / "dates.csv", "a,day\n" + "\n".join(f"{k},2020-01-{k % 28}-{k}" for k in range(99))),
        "empty": wrote(tmp_path / "empty.csv", ""),
        "one": wrote(tmp_path / "one.csv", text.replace("no", "yes")),
        "nothing": wrote(tmp_path / "nothing.csv", "a,b,y\n1,2,\n"),
        "nested": wrote(tmp_path / "s.arff", "@relation r\n@attribute a relational\n@data\nx\n"),
        "d": tmp_path,
        "m": tmp_path / "m.pilae",
        "npz": tmp_path / "n.npz",
    }
    np.savez(files["npz"], A=np.ones((3, 2)), y=np.ones(3))
    if "{m}" in arguments:
        assert run("fit", files["t"], "--target", "y", "-o", files["m"], "--quiet") == 0
    if "{late}" in arguments:
        files["late"] = wrote(tmp_path / "late.csv", "a,y\n" + "1,2.5\n" * 110_000 + "oops,1\n")
    if "{odd}" in arguments:
        files["odd"] = wrote(tmp_path / "odd.csv", "a,y\n" + "1,0\n2,1\n" * 55_000 + "3,0.5\n" * 50)
    capsys.readouterr()
    assert run(*[a.format(**files) for a in arguments]) == 1
    error = capsys.readouterr().err
    lines = [line for line in error.splitlines() if line.startswith("pilae: ")]
    assert len(lines) == 1
    assert re.search(sentence, lines[0])
    assert "Traceback" not in error


def test_a_reader_that_stops_is_no_error(folder, prices):
    code = f"{sys.executable} -m pilae.cli predict {prices} {folder / 'many.csv'} | head -1"
    pd.concat([pd.read_csv(folder / "new.csv")] * 2000).to_csv(folder / "many.csv", index=False)
    done = subprocess.run(code, shell=True, capture_output=True, text=True)
    assert done.stdout.strip() == "price"
    assert done.stderr == ""


def test_version_and_modules(capsys):
    with pytest.raises(SystemExit) as stop:
        run("--version")
    assert stop.value.code == 0
    assert pilae.__version__ in capsys.readouterr().out
    assert pilae.plot.DepthDisplay
    with pytest.raises(AttributeError):
        pilae.nonsense  # noqa: B018


def test_warnings_of_any_file_of_the_package_are_sentences(capsys):
    package = Path(pilae.__file__).parent
    files = list(package.rglob("*.py"))
    assert {package, package / "report"} <= {file.parent for file in files}
    for file in files:
        cli._warn("two\n  words", UserWarning, str(file), 1)
        cli._warn("not for people", RuntimeWarning, str(file), 1)
        cli._warn("of another library", UserWarning, str(package.parent / "other" / file.name), 1)
    assert capsys.readouterr().err == "pilae: two words\n" * len(files)


# ------------------------------------------------------------------------------------------- columns, ids, measures


def with_ids(path, n=150):
    rng = np.random.default_rng(1)
    x = rng.normal(size=n)
    frame = pd.DataFrame({"row": np.arange(1, n + 1), "key": [f"k{k:04d}" for k in range(n)], "x": x})
    frame["empty"] = None
    frame["same"] = "here"
    frame["y"] = np.where(x + 0.1 * rng.normal(size=n) > 0, "yes", "no")
    frame.loc[7, "y"] = "once"
    frame.to_csv(path, index=False)
    return path


def test_what_people_should_know_about_a_table_is_said(tmp_path, capsys):
    path = with_ids(tmp_path / "t.csv")
    found = fitted(path, capsys, "--holdout", 0)
    assert found["remarks"] == [
        "Column 'empty' has no value in any row: nothing is learnt from it.",
        "Column 'same' has the same value in every row: nothing is learnt from it.",
        "The columns 'row', 'key' have another value in every row, as numbers of rows and keys do: leave them out with "
        "--exclude 'row,key' if they mean nothing.",
        "Class 'once' has a single row to learn from, and none to be tested on.",
    ]
    found = fitted(path, capsys, "--exclude", "row, key,empty,same", "--holdout", 0)
    assert found["columns"] == 1
    assert found["remarks"] == ["Class 'once' has a single row to learn from, and none to be tested on."]


def test_few_rows_are_said(tmp_path, capsys):
    found = fitted(wrote(tmp_path / "t.csv", numbers(12)), capsys, "--holdout", 0)
    assert found["remarks"] == ["There are 12 rows to learn from: no score of so few says much."]


@pytest.mark.parametrize(
    ("name", "values", "found"),
    [
        ("a", range(50), True),
        ("a", [k * k for k in range(50)], False),
        ("id_str", [k * k for k in range(50)], True),
        ("houseId", [k * k for k in range(50)], True),
        ("width", [k * k for k in range(50)], False),
        ("a", [k + 0.5 for k in range(50)], False),
        ("a", [*range(49), 0], False),
        ("a", [f"A{k}" for k in range(50)], True),
        ("a", [f"Mr {k}" for k in range(50)], False),
        ("a", [f"2020-01-{k + 1:02d}" for k in range(31)], False),
        ("a", range(5), False),
    ],
)
def test_which_columns_look_like_ids(name, values, found):
    assert is_id(pd.Series(list(values), name=name)) == found


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--exclude", "nothing"], "There is no column 'nothing' to exclude: the columns are 'row'"),
        (["--exclude", "row,key,x,empty,same"], "--exclude leaves no column"),
        (["--columns", "x", "--exclude", "x"], "--exclude leaves no column"),
    ],
)
def test_columns_that_cannot_be_excluded(tmp_path, capsys, options, sentence):
    path = with_ids(tmp_path / "t.csv")
    assert run("fit", path, "--target", "y", "-o", tmp_path / "m.pilae", "--quiet", *options) == 1
    assert sentence in capsys.readouterr().err


def test_ids_stand_beside_predictions(tmp_path, capsys):
    path = with_ids(tmp_path / "t.csv")
    fitted(path, capsys, "--columns", "row,x")
    assert run("predict", tmp_path / "t.pilae", path, "--id", "key, row", "--proba", "-o", tmp_path / "p.csv") == 0
    found = pd.read_csv(tmp_path / "p.csv")
    assert list(found)[:3] == ["key", "row", "y"]
    assert found["key"].tolist() == [f"k{k:04d}" for k in range(150)]
    assert (tmp_path / "p.csv").read_text().splitlines()[1].startswith("k0000,1,")
    for name, sentence in (("nobody", "has no column 'nobody'"), ("y", "would have the name of the predictions")):
        assert run("predict", tmp_path / "t.pilae", path, "--id", name) == 1
        assert sentence in capsys.readouterr().err


def test_a_model_is_named_after_its_table(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with_ids(tmp_path / "flowers.csv.gz")
    assert run("fit", "flowers.csv.gz", "--target", "y", "--exclude", "row,key", "--quiet", "--json") == 0
    assert json.loads(capsys.readouterr().out)["model"] == "flowers.pilae"
    assert pilae.load(tmp_path / "flowers.pilae")


def test_held_out_rows_are_scored_first_and_then_taken_in(tmp_path, capsys):
    """The output layer is then that of all rows, as `partial_fit` gives it; the score is of the model before."""
    path = wrote(tmp_path / "t.csv", numbers(300))
    taken, left = (fitted(path, capsys, "--statistics", *more) for more in ([], ["--no-refit"]))
    without = pilae.load(tmp_path / "t.pilae")
    assert (taken["refitted_on_all_rows"], left["refitted_on_all_rows"]) == (True, False)
    assert taken["held_out"] == left["held_out"]
    fitted(path, capsys, "--statistics")
    model = pilae.load(tmp_path / "t.pilae")
    frame = pd.read_csv(path)
    out = files.held_out(0, 300, 0.1)
    again = without["model"].partial_fit(without["table"].transform(frame[out]), frame["y"][out])
    close(model.predict(frame), again.predict(without["table"].transform(frame)), **rounding(model["model"]))
    assert run("fit", path, "--target", "y", "-o", tmp_path / "m.pilae", "--quiet") == 0
    assert "rows it had not seen, then taken in)" in capsys.readouterr().out


def test_evaluate_measures_classes_and_numbers(tmp_path, capsys):
    path = with_ids(tmp_path / "t.csv")
    fitted(path, capsys, "--columns", "x")
    assert run("evaluate", tmp_path / "t.pilae", path, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    model, frame = pilae.load(tmp_path / "t.pilae"), pd.read_csv(path)
    assert found["measures"]["balanced accuracy"] == balanced_accuracy_score(frame["y"], model.predict(frame))
    assert found["measures"]["log loss"] > 0
    two = frame[frame["y"] != "once"]
    two.to_csv(path, index=False)
    fitted(path, capsys, "--columns", "x")
    assert run("evaluate", tmp_path / "t.pilae", path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.rsplit(" ", 1)[0] for line in lines[1:]] == [
        "balanced accuracy",
        "F1, mean of classes",
        "log loss",
        "ROC AUC",
    ]
    assert float(lines[-1].split()[-1]) > 0.95
    two[two["y"] == "no"].to_csv(path, index=False)
    assert run("evaluate", tmp_path / "t.pilae", path) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "ROC AUC undefined"
    path = wrote(tmp_path / "t.csv", numbers())
    fitted(path, capsys)
    assert run("evaluate", tmp_path / "t.pilae", path, "--json") == 0
    measures = json.loads(capsys.readouterr().out)["measures"]
    assert (
        0
        < measures["median absolute error"]
        < measures["mean absolute error"]
        < measures["root mean squared error"]
        < 0.2
    )


def test_a_report_counts_the_gaps_of_the_table_it_is_given(tmp_path, capsys):
    """It used to show those of the table that the model was fitted on."""
    lines = numbers().splitlines()
    path = wrote(tmp_path / "t.csv", "\n".join(lines) + "\n")
    fitted(path, capsys)
    test = wrote(tmp_path / "test.csv", "\n".join([*lines[:40], ",1.5", ",2.5", ",2.5", ","]) + "\n")
    assert run("report", tmp_path / "t.pilae", test, "-o", tmp_path / "r.json") == 0
    report = json.loads((tmp_path / "r.json").read_text())
    assert [column["missing"] for column in report["table"]["columns"]] == [3]


def test_a_fast_fit_searches_nothing(tmp_path, capsys):
    path = wrote(tmp_path / "t.csv", numbers())
    assert fitted(path, capsys)["leave_one_out"] > 0.95
    assert pilae.load(tmp_path / "t.pilae")["model"].search_
    assert fitted(path, capsys, "--fast")["leave_one_out"] > 0.95
    assert not pilae.load(tmp_path / "t.pilae")["model"].search_
