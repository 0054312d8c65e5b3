"""The command line on images: from a folder for each class to predictions and a report."""

import csv
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import pilae
from helpers import close
from pilae import PILAEImageClassifier, cli
from pilae._arrays import NUMPY
from pilae._pictures.folders import Found, held_out_last, images_by_class
from pilae.cli import pictures
from pilae.datasets import load_images

KINDS = ("across", "down", "plain")


def drawn(kind, rng):
    """Stripes across, stripes down, or none; dark and noisy."""
    image = rng.integers(0, 90, (12, 14))
    if kind == "across":
        image[rng.integers(0, 2) :: 3] += 60
    if kind == "down":
        image[:, rng.integers(0, 2) :: 3] += 60
    return Image.fromarray(image.astype(np.uint8))


def wrote(path, count, seed, kinds=KINDS):
    rng = np.random.default_rng(seed)
    for kind in kinds:
        (path / kind).mkdir(parents=True)
        for k in range(count):
            drawn(kind, rng).save(path / kind / f"{k:02}.png")
    return path


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("images")
    wrote(path / "train", 30, 0)
    wrote(path / "new", 8, 1)
    return path


@pytest.fixture(scope="module")
def model(folder):
    """Fitted without a search of any length."""
    out = folder / "stripes.pilae"
    assert run("fit", folder / "train", "-o", out, "--quiet", "--fast", "--report", folder / "stripes.html") == 0
    return out


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_fit_says_what_it_found(folder, tmp_path, capsys):
    assert run("fit", folder / "train", "-o", tmp_path / "m.pilae", "--fast", "--quiet") == 0
    said = capsys.readouterr()
    assert said.err == ""
    first, loo, held, written = said.out.splitlines()
    assert re.fullmatch(r"3 classes of 14 x 12 gray images: 81 images, .* s", first)
    assert re.fullmatch(r"leave-one-out accuracy [01]\.\d{4}", loo)
    assert held.endswith("(9 images it had not seen, then fitted again to all)")
    assert written == f"written: {tmp_path / 'm.pilae'}"


def test_fit_answers_in_json_and_shows_progress(folder, tmp_path, capsys):
    assert run("fit", folder / "train", "-o", tmp_path / "m.pilae", "--json", "--budget", 0) == 0
    said = capsys.readouterr()
    assert re.search(r"^reading images +90 rows", said.err, re.M)
    result = json.loads(said.out)
    assert (result["images"], result["held_out_images"], result["classes"], result["size"]) == (81, 9, 3, [14, 12])
    assert result["candidates"] == 1
    assert result["candidates_not_tried"] > 3
    assert result["held_out"] > 0.6
    assert result["refitted_on_all_images"]


def test_the_model_that_is_written_has_the_structure_that_was_scored(folder, tmp_path, capsys):
    for name, more in (("some", ["--no-refit"]), ("all", [])):
        assert run("fit", folder / "train", "-o", tmp_path / name, "--quiet", "--json", *more) == 0
    some, everything = pilae.load(tmp_path / "some"), pilae.load(tmp_path / "all")
    assert (len(some.anchors_), len(everything.anchors_)) == (81, 90)
    assert some.fitted_.plan == everything.fitted_.plan  # with what has no parameter
    start = PILAEImageClassifier()._spec(some.image_shape_, 81, NUMPY).plan
    assert some.fitted_.plan != start  # which the search did change
    assert [row["loss"] for row in some.search_] == [row["loss"] for row in everything.search_]
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert told[0]["held_out"] == told[1]["held_out"]
    assert [each["leave_one_out"] for each in told] == [some.loo_score_] * 2
    found, out = held_out_last(images_by_class(folder / "train"), 0.1)
    images, labels, files = load_images(folder / "train")
    row = {file: k for k, file in enumerate(files)}
    held = [row[str(file)] for file in found.files[len(found.files) - out :]]
    assert told[0]["held_out"] == np.mean(some.predict(images[held]) == labels[held])
    some.fitted_ = replace(some.fitted_, plan=some.fitted_.plan._replace(inner=3.0))
    assert some._fit_again(images, labels).kernel_.inner == 3.0


def test_the_code_in_a_report_runs(folder, tmp_path):
    """Also where files were left out, and on images that are all gray."""
    train = tmp_path / "train"
    shutil.copytree(folder / "train", train)
    (next(train.iterdir()) / "broken.png").write_bytes(b"nothing")
    model, page = tmp_path / "m.pilae", tmp_path / "page.md"
    report = ["--report", page, "--skip-bad-rows", "1", "--fast"]
    assert run("fit", train, "-o", model, "--quiet", *report) == 0
    [code] = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    with pytest.warns(UserWarning, match="broken.png"):
        exec(code, found := {})
    assert len(found["images"]) == len(found["labels"]) == 90


def test_predictions_are_those_of_python(folder, model, tmp_path, capsys):
    out = tmp_path / "out.csv"
    assert run("predict", model, folder / "new", "-o", out, "--proba") == 0
    assert capsys.readouterr().out == f"24 images predicted: {out}\n"
    images, _, files = load_images(folder / "new")
    loaded, rows = pilae.load(model), rows_of(out)
    assert [row["file"] for row in rows] == files
    assert [row["class"] for row in rows] == loaded.predict(images).tolist()
    P = np.array([[float(row[f"class={kind}"]) for kind in KINDS] for row in rows])
    close(P, loaded.predict_proba(images), "float32")


def test_blocks_of_images_give_the_same_predictions(folder, model, tmp_path, monkeypatch):
    assert run("predict", model, folder / "new", "-o", tmp_path / "a.csv") == 0
    monkeypatch.setattr(pictures, "BLOCK_BYTES", 5 * 12 * 14)
    assert run("predict", model, folder / "new", "-o", tmp_path / "b.csv") == 0
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_files_of_other_sizes_and_colours_are_predicted_by_name(folder, model, tmp_path, capsys):
    one = tmp_path / "one.jpg"
    Image.open(folder / "new/down/00.png").convert("RGB").resize((280, 240)).save(one, quality=95)
    assert run("predict", model, one, folder / "new/down/00.png", "--json", "-o", tmp_path / "o.csv") == 0
    assert json.loads(capsys.readouterr().out)["images"] == 2
    assert [row["class"] for row in rows_of(tmp_path / "o.csv")] == ["down", "down"]
    assert run("predict", model, one) == 0
    assert capsys.readouterr().out == f"file,class\n{one},down\n"


def test_what_cannot_be_read_is_left_out_when_asked(folder, model, tmp_path, capsys):
    path = wrote(tmp_path / "torn", 6, 2)
    (path / "plain/00.png").write_bytes(b"no image")
    for command in (
        ["fit", path, "-o", tmp_path / "m"],
        ["predict", model, path, "-o", tmp_path / "p.csv"],
        ["evaluate", model, path],
        ["report", model, path, "-o", tmp_path / "r.html"],
    ):
        assert run(*command) == 1
        error = capsys.readouterr().err.splitlines()[-1]
        assert error.startswith(
            "pilae: 1 of 18 images cannot be read, 'plain/00.png' (no image of a kind that is read)"
        )
        assert error.endswith("or leave them out with --skip-bad-rows 1.")
        more = ["--fast", "--quiet"] if command[0] == "fit" else []
        assert run(*command, "--skip-bad-rows", 1, *more) == 0
        assert "'plain/00.png' (no image of a kind that is read): they are left out." in capsys.readouterr().err
    assert len(rows_of(tmp_path / "p.csv")) == 17


def test_evaluate_counts_classes_nobody_has_heard_of_as_wrong(folder, model, tmp_path, capsys):
    assert run("evaluate", model, folder / "new", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    images, labels, _ = load_images(folder / "new")
    assert result["score"] == pilae.load(model).score(images, labels) > 0.8
    assert result["images"] == 24
    path = wrote(tmp_path / "odd", 4, 3)
    (path / "plain").rename(path / "checked")
    assert run("evaluate", model, path) == 0
    said = capsys.readouterr()
    assert "The model has no class 'checked': images there are counted as wrong." in said.err
    assert float(said.out.split()[1]) <= 0.67


def test_reports_name_the_files(folder, model, tmp_path, capsys):
    assert "Images of train" in (folder / "stripes.html").read_text()
    out = tmp_path / "r.json"
    path = wrote(tmp_path / "swapped", 5, 4)
    (path / "down").rename(path / "x")
    (path / "across").rename(path / "down")
    (path / "x").rename(path / "across")
    assert run("report", model, path, "-o", out) == 0
    test = json.loads(out.read_text())["test"]
    assert test["rows"] == 15
    assert test["hardest"][0]["image"].startswith(str(path))
    assert {pair["true"] for pair in test["pairs"]} >= {"across", "down"}
    capsys.readouterr()
    assert run("report", model, "-o", "-") == 0
    assert "By leave-one-out on training images" in capsys.readouterr().out


def test_copies_among_the_held_out_images_are_counted(tmp_path, capsys):
    path = wrote(tmp_path / "copies", 10, 5)
    for file in sorted(path.glob("*/*.png")):
        file.with_stem(f"{file.stem} (copy)").write_bytes(file.read_bytes())
    assert run("fit", path, "-o", tmp_path / "m", "--fast", "--quiet", "--holdout", 0.2) == 0
    said = re.search(r"(\d+) of 12 held-out images are the same, pixel by pixel", capsys.readouterr().err)
    order, out = held_out_last(images_by_class(path), 0.2)
    train = {file.read_bytes() for file in order.files[:-out]}
    assert int(said[1]) == sum(file.read_bytes() in train for file in order.files[-out:]) > 0


def test_an_image_in_two_classes_is_named(tmp_path, capsys):
    path = wrote(tmp_path / "torn", 10, 5)
    one, other = sorted(path.iterdir())[:2]
    for file in sorted(one.glob("*.png"))[:3]:
        (other / f"again {file.name}").write_bytes(file.read_bytes())
    assert run("fit", path, "-o", tmp_path / "m", "--fast", "--quiet") == 0
    said = capsys.readouterr().err
    assert "3 of " in said
    assert "put each into one" in said
    assert "too high" not in said


def test_predictions_do_not_take_the_place_of_an_image(folder, model, capsys):
    file = folder / "new/down/00.png"
    before = file.read_bytes()
    assert run("predict", model, file, "-o", file) == 1
    assert "would take the place of the file that is read" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_the_code_of_a_report_runs(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    assert run("fit", "train", "--fast", "--quiet", "-o", tmp_path / "m", "--report", tmp_path / "r.json") == 0
    space = {}
    exec(json.loads((tmp_path / "r.json").read_text())["code"], space)
    assert len(space["files"]) == 90


def test_info_and_export(model, tmp_path, capsys):
    assert run("info", model) == 0
    said = capsys.readouterr().out
    assert re.search(r"^images +14 x 12, 1 channel$", said, re.M)
    assert re.search(r"^classes +'across', 'down', 'plain'$", said, re.M)
    assert run("info", model, "--json") == 0
    assert json.loads(capsys.readouterr().out)["classes"] == list(KINDS)
    assert run("export", model, "--onnx", tmp_path / "m.onnx") == 1
    assert "is not written as ONNX" in capsys.readouterr().err
    assert not (tmp_path / "m.onnx").exists()


def test_models_go_to_standard_output(folder, capfdbinary):
    assert run("fit", folder / "train", "-o", "-", "--fast", "--quiet") == 0
    said = capfdbinary.readouterr()
    assert said.out.startswith(b"PK")
    assert b"leave-one-out" in said.err


def test_a_model_is_named_after_its_folder_and_sizes_can_be_asked_for(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("fit", f"{folder / 'train'}/", "--size", "7x6", "--fast", "--quiet") == 0
    assert pilae.load("train.pilae").image_shape_[:2] == (6, 7)


def test_the_same_seed_gives_the_same_model(folder, tmp_path):
    for name in ("a", "b"):
        assert run("fit", folder / "train", "-o", tmp_path / name, "--fast", "--quiet", "--seed", 3) == 0
    images = load_images(folder / "new").images
    a, b = (pilae.load(tmp_path / name).decision_function(images) for name in ("a", "b"))
    assert np.array_equal(a, b)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fit", "{train}", "--target", "y"], "--target is for tables"),
        (["fit", "{train}", "--statistics"], "--statistics is for tables"),
        (["fit", "{train}", "--size", "big"], "--size must be width x height in pixels, such as 64x48, not 'big'"),
        (["fit", "{train}", "--size", "0x4"], "--size must be"),
        (["fit", "{train}", "--holdout", "1"], "--holdout must be"),
        (["fit", "{train}", "--skip-bad-rows", "-1"], "--skip-bad-rows must be"),
        (["fit", "{train}", "-o", "nowhere/m.pilae"], "There is no folder 'nowhere'"),
        (["fit", "{train}", "--report", "r.pdf"], r"\.pdf"),
        (["fit", "{train}/plain"], "has no folder for a class in it: 30 images lie directly in it"),
        (["fit", "{folder}"], "hold folders and no images: .*new'"),
        (["fit", "{table}", "--target", "y", "--size", "8x8"], "--size is for images"),
        (["predict", "{model}", "{folder}", "--interval", "0.9"], "--interval is for tables"),
        (["predict", "{model}", "nowhere.png"], "There is no file or folder 'nowhere.png'"),
        (["predict", "{model}", "{table}"], "1 of 1 images cannot be read, .* mend them.$"),
        (["predict", "{model}", "{folder}", "--json"], "name a file with -o"),
        (["predict", "{floats}", "{folder}"], "was fitted on float64 images of 1 channel"),
        (["predict", "{tabular}", "{table}", "{table}"], "Name one table at a time: there are 2"),
    ],
)
def test_errors_are_one_sentence(arguments, sentence, folder, model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,y\n" + "1,no\n2,yes\n" * 20)
    rng = np.random.default_rng(0)
    if "{floats}" in arguments:
        PILAEImageClassifier(filters=8).fit(rng.random((20, 6, 6)), np.arange(20) % 2).save(tmp_path / "f.pilae")
    if "{tabular}" in arguments:
        assert run("fit", "t.csv", "--target", "y", "-o", "t.pilae", "--quiet", "--fast") == 0
    places = {
        "train": folder / "train",
        "folder": folder,
        "model": model,
        "table": "t.csv",
        "floats": "f.pilae",
        "tabular": "t.pilae",
    }
    capsys.readouterr()
    assert run(*(argument.format(**places) for argument in arguments)) == 1
    error = capsys.readouterr().err
    assert error.count("pilae: ") == 1
    assert re.search(sentence, error.splitlines()[-1])
    assert not list(tmp_path.glob("train.pilae"))


def test_a_table_needs_a_target(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    for name, said in (("t.csv", "--target is missing"), ("t", "there is no file or folder")):
        with pytest.raises(SystemExit) as stop:
            run("fit", tmp_path / name)
        assert stop.value.code == 2
        assert said in capsys.readouterr().err


def test_held_out_images_are_some_of_each_class_by_their_names(folder, tmp_path):
    found = images_by_class(folder / "train")
    order, out = held_out_last(found, 0.1)
    assert out == 9
    assert sorted(order.files) == found.files
    held = order.files[-out:]
    assert {kind: sum(file.parent.name == kind for file in held) for kind in KINDS} == dict.fromkeys(KINDS, 3)
    assert [order.labels[order.files.index(file)] for file in held] == [file.parent.name for file in held]
    more = Found([*found.files, tmp_path / "new.png"], [*found.labels, "plain"], [])
    again, out = held_out_last(more, 0.1)
    assert set(again.files[-out:]) == set(held) or tmp_path / "new.png" in again.files[-out:]
    assert held_out_last(found, 0.0)[1] == 0
    few = Found(found.files[:1] + found.files[30:32], ["across", "down", "down"], [])
    order, out = held_out_last(few, 0.9)
    assert out == 1  # no class is held out whole
    assert set(order.labels[:-out]) == {"across", "down"}
