"""The report on a classifier of images."""

import base64
import io
import json
import re
from collections import Counter

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from helpers import close
from pilae import PILAEImageClassifier
from pilae.plot import FiltersDisplay
from pilae.report.figures import drawn_images

DIGITS = load_digits()
NAMES = np.array(["zero", "one <b>", "two", "three", "four", "five", "six", "seven", "eight", "nine"])[DIGITS.target]
FIXED = {
    "patch": 3,
    "filters": 16,
    "pool": 2,
    "encoder_ridge": 0.1,
    "contrast": 0.1,
    "threshold": 1.0,
    "mirror": False,
    "pooling": "average",
}
PNG = re.compile(r'href="data:image/png;base64,([^"]+)"')


@pytest.fixture(scope="module")
def model():
    return PILAEImageClassifier(**FIXED).fit(DIGITS.images[:200], NAMES[:200])


@pytest.fixture(scope="module")
def report(model):
    files = [f"digits/{k}.png" for k in range(800)]
    return model.report(DIGITS.images[900:1700], NAMES[900:1700], title="Digits <script>", files=files)


def test_bytes_of_few_levels_are_drawn_from_black_to_white():
    dim = PILAEImageClassifier(**FIXED).fit(DIGITS.images[:200].astype(np.uint8), NAMES[:200])
    assert dim.report().summary["pixels"] == [0.0, 16.0]
    bright = PILAEImageClassifier(**FIXED).fit((DIGITS.images[:200] * 15).astype(np.uint8), NAMES[:200])
    assert bright.report().summary["pixels"] == [0.0, 255.0]


def test_classes_that_the_model_never_saw_are_named(model):
    others = np.where(NAMES == "two", "eleven", NAMES)
    summary = model.report(DIGITS.images[900:1000], others[900:1000]).summary
    assert "The model has no class 'eleven': images there are counted as wrong." in summary["verdict"]


def test_it_says_what_the_model_says(model, report):
    y, predicted = NAMES[900:1700], model.predict(DIGITS.images[900:1700])
    P, test = model.predict_proba(DIGITS.images[900:1700]), report.summary["test"]
    assert test["score"] == np.mean(y == predicted)
    assert test["wrong"] == np.sum(y != predicted) > 20
    counted = Counter((a, b) for a, b in zip(y.tolist(), predicted.tolist(), strict=True) if a != b)
    told = {(each["true"], each["predicted"]): each["images"] for each in test["pairs"]}
    assert told == {pair: counted[pair] for pair in told}
    assert list(told.values()) == sorted(counted.values(), reverse=True)[: len(told)]
    for each in test["pairs"]:
        close(each["share"], each["images"] / np.sum(y == each["true"]))
        assert all((y[k], predicted[k]) == (each["true"], each["predicted"]) for k in each["shown"])
    rows = [int(each["image"].removeprefix("digits/").removesuffix(".png")) for each in test["hardest"]]
    assert (y[rows] != predicted[rows]).all()
    surest = np.sort(P.max(axis=1)[y != predicted])[::-1][: len(rows)]
    close(np.array([each["probability"] for each in test["hardest"]]), surest)


def test_the_page_shows_the_images(report):
    page, test = report.to_html(), report.summary["test"]
    assert len(PNG.findall(page)) == len(test["pairs"]) + len(test["hardest"]) + 3  # filters, confusion, what is kept
    assert "one &lt;b&gt;" in page
    assert "<b>" not in page.split("<body>")[1].replace('<div class="tile"><b>', "")
    assert "<script" not in page
    for words in ("How good it is", "Which classes it confuses", "The hardest images", "What images are compared by"):
        assert words in page
    first = test["hardest"][0]
    row = int(first["image"].removeprefix("digits/").removesuffix(".png"))
    drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(PNG.search(report.figures["hardest0"])[1]))))
    expected = DIGITS.images[900 + row] / DIGITS.images[:200].max() * 255
    assert np.abs(drawn[2:-2, 2:-2, 0] - expected).max() <= 1
    assert drawn[2:-2, 2:-2, 3].min() == 255
    assert drawn[:2, :, 3].max() == 0


def test_markdown_and_json_name_the_images(report, tmp_path):
    report.save(tmp_path / "r.md")
    report.save(tmp_path / "r.json")
    first = report.summary["test"]["hardest"][0]["image"]
    assert first in (tmp_path / "r.md").read_text().replace("\\", "")
    assert json.loads((tmp_path / "r.json").read_text()) == report.summary
    assert (tmp_path / "r.json").stat().st_size < 100_000


def test_the_verdict_is_about_images(report):
    first = report.summary["verdict"][0]
    assert first.startswith("Of 800 test images ")
    assert "would be right for" in first
    assert "column" not in " ".join(report.summary["verdict"])


def test_a_guess_is_called_one(model):
    y = np.random.default_rng(0).permutation(NAMES[900:1000])
    verdict = model.report(DIGITS.images[900:1000], y).summary["verdict"]
    assert any(
        "not surely better than guessing" in sentence or "worse than guessing" in sentence for sentence in verdict
    )


def test_without_test_images_and_without_mistakes(model):
    page = model.report().to_html()
    assert "By leave-one-out on training images its accuracy is" in page
    assert "confuses" not in page
    right = np.flatnonzero(model.predict(DIGITS.images) == NAMES)[:40]
    page = model.report(DIGITS.images[right], NAMES[right]).to_html()
    assert "Every test image is named right." in page
    assert "The hardest images" not in page


def test_colours_rows_and_classes_nobody_has_heard_of(model):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 8, 9, 3), dtype=np.uint8)
    y = np.arange(60) % 2
    images[y == 1, :, :4] //= 2
    found = PILAEImageClassifier(**FIXED).fit(images, y)
    summary = found.report(images[:20], np.full(20, 7)).summary
    assert summary["test"]["score"] == 0
    assert summary["test"]["pairs"][0]["true"] == "7"
    assert summary["pixels"] == [0, 255]
    assert found.report(images[:20].reshape(20, -1), 1 - y[:20]).to_html()
    assert FiltersDisplay.from_estimator(found, count=4).filters.shape == (4, 3, 3, 3)


def test_what_was_searched_is_folded():
    model = PILAEImageClassifier(filters=8).fit(DIGITS.images[:80], NAMES[:80])
    page = model.report().to_html()
    assert "<summary><h2>What was searched</h2></summary>" in page
    assert len(model.search_) > 5
    assert model.report().summary["code"].endswith("PILAEImageClassifier(filters=8).fit(X, y)")


def test_the_code_of_a_model_that_searched_nothing_has_classes_too(model):
    assert model.report().summary["code"].endswith(".fit(X, y)")


@pytest.mark.parametrize("options", [{"y": [1]}, {"y": NAMES[:3], "files": ["a"]}])
def test_other_numbers_of_classes_or_files_are_refused(model, options):
    with pytest.raises(ValueError, match="3 images: give one for each"):
        model.report(DIGITS.images[:3], **options)


def test_an_image_without_numbers_lets_the_page_shine_through():
    drawn = drawn_images([np.stack([np.full((2, 2), 5.0), np.full((2, 2), np.nan)])], (0, 5))
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(PNG.search(drawn)[1]))))
    assert sheet[2:4, 2:4].min() == 255
    assert sheet[2:4, 8:10, 3].max() == 0
