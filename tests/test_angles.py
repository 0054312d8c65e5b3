"""Images compared by angles: by the formula, with their mirror images as rows, and without each image."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

import pilae
from helpers import close
from pilae import PILAEImageClassifier
from pilae._arrays import NUMPY, space_of, to_numpy
from pilae._engine.dual import solve_dual
from pilae._estimators import image_room
from pilae._network import angles
from pilae._network.angles import AngleKernel
from pilae._network.compared import moves, with_copies
from pilae._network.patches import Shape
from pilae._search.angles import AnglePlan, build_kernel, step_of
from test_conv import images

DIGITS, ORDER = load_digits(), np.random.default_rng(0).permutation(1797)
IMAGES, TARGET = DIGITS.images[ORDER].astype(np.uint8), DIGITS.target[ORDER]
X, Y = IMAGES[:300], TARGET[:300]
GIVEN = {"patch": 3, "pool": 2, "filters": 12, "encoder_ridge": 0.1, "contrast": 0.1, "threshold": 0.5, "shift": 0}
GIVEN |= {"pooling": "average"}
FIXED = GIVEN | {"mirror": False}

COMPARED = {"condition": 1e4, "terms": 100}
"""Roots of pooled responses, at least 1e-6 where they are not zero, brought to unit length, summed over a patch."""


def kernel_of(some, mirror=False, patches=(3, 4), pooling="average"):
    return build_kernel(AnglePlan(patches, 2, 0.1, 0.1, 0.5, mirror, 2.0, 1.5, 0, pooling), some, 12, 0)


def by_hand(kernel, one, other):
    """k of two images, cell by cell."""

    def units(image):
        found = []
        for branch in kernel.branches:
            F = branch(image[None]).reshape(branch.grid[0] * branch.grid[1], -1)
            found += list(F / np.maximum(np.linalg.norm(F, axis=1, keepdims=True), 1e-6))
        return found

    def s(a, b):
        total = sum(np.exp(kernel.inner * (u @ v - 1)) for u, v in zip(units(a), units(b), strict=True))
        if kernel.mirrored:
            pairs = zip(units(a), units(b[:, ::-1]), strict=True)
            total += sum(np.exp(kernel.inner * (u @ v - 1)) for u, v in pairs)
        return total

    return np.exp(kernel.outer * (s(one, other) / np.sqrt(s(one, one) * s(other, other)) - 1))


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize(("channels", "pooling"), [(1, "average"), (3, "average"), (3, "smooth")])
def test_two_images_are_compared_as_the_formula_says(mirror, channels, pooling):
    some = images(n=12, channels=channels)
    kernel = kernel_of(some, mirror, pooling=pooling)
    cells = kernel.cells(some, NUMPY, 5)
    K = kernel(cells, cells, NUMPY)
    close(K, [[by_hand(kernel, a, b) for b in some] for a in some], **COMPARED)
    close(np.diag(K), np.ones(12), **COMPARED)


def test_every_library_compares_alike(library):
    some = images(n=20, channels=1)
    expected = kernel_of(some)
    cells = expected.cells(some, NUMPY)
    there = library(some)
    kernel, space = kernel_of(there), space_of(there)
    K = kernel(kernel.cells(there, space), kernel.cells(there[:7, ...], space), space)
    close(to_numpy(K), expected(cells, cells, NUMPY)[:, :7], condition=1e6, terms=100)


def test_a_mirror_image_is_the_same_image():
    some = images(n=15, channels=1)
    kernel = kernel_of(some, mirror=True)
    here, mirrored = kernel.cells(some, NUMPY), kernel.cells(some[:, :, ::-1], NUMPY)
    close(kernel(here, mirrored, NUMPY), kernel(here, here, NUMPY), **COMPARED)


def test_mirroring_is_fitting_to_all_images_and_their_mirror_images():
    """The inner sums s, as a linear output layer on them: K of the mirrored kernel is twice the mean over copies, so
    outputs are those of a fit to both, with half the ridge, and leave-one-out leaves out both."""
    some, rng = images(n=30, channels=1), np.random.default_rng(0)
    Z = rng.standard_normal((30, 2))
    kernel = kernel_of(some, mirror=True)
    single = AngleKernel(kernel.branches, kernel.inner, kernel.outer, False)
    twice = np.concatenate([some, some[:, :, ::-1]])

    def sums(k, cells):
        """s: the outer bend undone."""
        return (np.log(k(cells, cells, NUMPY)) / k.outer + 1) * np.sqrt(np.outer(cells.own, cells.own))

    S, T = (sums(k, k.cells(x, NUMPY)) for k, x in ((kernel, some), (single, twice)))
    ridge = 0.1
    found = solve_dual(S.copy(), Z, [ridge], np.ones(2))
    centre = np.eye(30) - 1 / 30
    penalty = ridge * np.mean(np.diag(centre @ S @ centre))

    def outputs(rows):
        """Of a fit to these of the sixty rows, for all: K + lambda I with an intercept."""
        n = len(rows)
        K = T[np.ix_(rows, rows)]
        mean = K.mean(axis=0)
        a = np.linalg.solve(
            K - mean - mean[:, None] + mean.mean() + penalty * np.eye(n), (both - both[rows].mean(0))[rows]
        )
        return T[:, rows] @ a - mean @ a + both[rows].mean(axis=0)

    both = np.concatenate([Z, Z])
    close((S @ found.a + found.b), outputs(np.arange(60))[:30], condition=1e5, terms=100)
    for image in (0, 11):
        rest = np.array([row for row in range(60) if row % 30 != image])
        close(found.loo.outputs[image], outputs(rest)[image], condition=1e5, terms=100)


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("mirror", [False, True])
def test_leave_one_out_is_that_of_a_fit_without_the_image_and_its_copies(mirror, shift):
    given = GIVEN | {"mirror": mirror, "shift": shift}
    model = PILAEImageClassifier(**given, ridge=0.05).fit(X[:60].astype(float), Y[:60])
    fitted, copies = model.fitted_, 5 if shift else 1
    cells = fitted.anchor_cells("auto")
    K = fitted.kernel(cells, cells, NUMPY)
    assert len(K) == 60 * copies
    Z, (whole, _) = np.repeat(np.eye(10)[Y[:60]], copies, axis=0), centred(K)
    penalty = 0.05 * np.mean(np.diag(whole))
    for row in (3, 40):
        rest = np.arange(len(K)) // copies != row
        part, mean = centred(K[np.ix_(rest, rest)])
        a = np.linalg.solve(part + penalty * np.eye(len(part)), Z[rest] - Z[rest].mean(axis=0))
        outputs = K[row * copies, rest] @ a - mean @ a + Z[rest].mean(axis=0)
        close(fitted.head.output.loo.outputs[row], outputs, condition=1e5, terms=100)


def test_copies_are_moved_along_the_sides_that_are_long_enough(library):
    some = np.arange(2 * 3 * 4).reshape(2, 3, 4, 1) + 0.0
    both = to_numpy(with_copies(library(some), 1)).reshape(2, 5, 3, 4)
    np.testing.assert_array_equal(both[:, 0], some[..., 0])
    np.testing.assert_array_equal(both[0, 1], [[0, 1, 2, 3], [0, 1, 2, 3], [4, 5, 6, 7]])  # down
    np.testing.assert_array_equal(both[0, 2], [[4, 5, 6, 7], [8, 9, 10, 11], [8, 9, 10, 11]])
    np.testing.assert_array_equal(both[0, 3], [[0, 0, 1, 2], [4, 4, 5, 6], [8, 8, 9, 10]])  # to the right
    np.testing.assert_array_equal(both[0, 4], [[1, 2, 3, 3], [5, 6, 7, 7], [9, 10, 11, 11]])
    assert moves(Shape(3, 4, 1), 0) == [(0, 0)]
    assert moves(Shape(1, 9, 1), 2) == [(0, 0), (0, 2), (0, -2)]
    assert moves(Shape(2, 2, 3), 1) == [(0, 0)]


def test_moved_copies_are_tried_where_there_is_room_and_kept_where_they_help(monkeypatch, tmp_path):
    """A bar at any of many places, or two: an image says nothing of one beside it, and copies do."""
    rng = np.random.default_rng(0)
    pictures = 0.3 * rng.standard_normal((400, 9, 9))
    double = np.arange(400) % 2
    for image, two in zip(pictures, double, strict=True):
        row, column = rng.integers(1, 8), rng.integers(1, 6)
        image[row, column : column + 2] += 3.0
        image[row, column + 2] += 3.0 * two
    given = {"filters": 16, "patch": 3, "pool": 3, "encoder_ridge": 1.0, "contrast": None, "threshold": 0.5}
    given |= {"pooling": "average"}
    model = PILAEImageClassifier(**given, mirror=False, random_state=0).fit(pictures[:80], double[:80])
    assert {row["shift"] for row in model.search_} == {0, 1, 2}
    assert model.shift_ > 0
    still = PILAEImageClassifier(**given, mirror=False, shift=0, random_state=0).fit(pictures[:80], double[:80])
    assert still.shift_ == 0
    assert model.score(pictures[80:], double[80:]) > still.score(pictures[80:], double[80:])
    model.save(tmp_path / "m.pilae")
    back = pilae.load(tmp_path / "m.pilae")
    np.testing.assert_array_equal(back.decision_function(pictures), model.decision_function(pictures))
    monkeypatch.setattr("pilae._estimators.image_classifier.COPIES", {False: 399})
    model = PILAEImageClassifier(**given, mirror=False, random_state=0).fit(pictures[:80], double[:80])
    assert model.shift_ == 0


def test_a_shift_beyond_the_image_is_refused():
    with pytest.raises(ValueError, match="shift=4 is half of an image of 8 x 8 pixels, or more: give at most 3"):
        PILAEImageClassifier(**GIVEN | {"shift": 4}, mirror=False).fit(X[:60], Y[:60])


def test_what_was_compared_in_fit_is_not_made_again_to_predict(monkeypatch):
    model = PILAEImageClassifier(**GIVEN | {"shift": 1}, mirror=False).fit(X[:60], Y[:60])
    made, cells = [], AngleKernel.cells
    monkeypatch.setattr(AngleKernel, "cells", lambda *given: made.append(given[1].shape[0]) or cells(*given))
    model.predict(X[60:70])
    assert made == [10]


def test_there_are_as_many_filters_as_room_and_time_allow(monkeypatch):
    module = "pilae._estimators.image_room"
    model = PILAEImageClassifier(**FIXED | {"filters": "auto"})
    monkeypatch.setattr(f"{module}.MOST_FILTERS", {False: 20, True: 20})
    assert model.fit(X, Y).filters_ == 20
    monkeypatch.setattr(f"{module}.LEAST_FILTERS", 10)
    each = 300 * (6 * 6 * 9 + 2 * 2 * 2 * 300)  # seen in patches, and compared in cells of both signs
    monkeypatch.setattr(f"{module}.MOST_PRODUCTS", 15.5 * each)
    assert model.fit(X, Y).filters_ == 15
    monkeypatch.setattr(f"{module}.MOST_PRODUCTS", each)
    assert model.fit(X, Y).filters_ == 10


def test_copies_that_there_is_no_room_for_are_refused(monkeypatch):
    monkeypatch.setattr(image_room, "MOST_ALL", 1000)
    with pytest.raises(ValueError, match="shift=1 makes 5 rows of each of the 300 images"):
        PILAEImageClassifier(**GIVEN | {"shift": 1}, mirror=False).fit(X, Y)


def centred(K):
    mean = K.mean(axis=0)
    return K - mean - mean[:, None] + mean.mean(), mean


def test_digits_without_an_argument():
    model = PILAEImageClassifier(filters=32).fit(X, Y)
    assert model.loo_score_ > 0.95
    assert model.score(IMAGES[300:800], TARGET[300:800]) > 0.95
    assert not model.mirror_
    assert sum(row["chosen"] for row in model.search_) == 1
    P = model.predict_proba(X[:20])
    close(P.sum(axis=1), np.ones(20), dtype=P.dtype.name, terms=10, condition=10)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X[:20]))


def test_two_images_that_are_one_are_known_to_be_nothing_by_themselves():
    X = np.repeat(np.random.default_rng(0).random((1, 9, 8)), 2, axis=0)
    model = PILAEImageClassifier(patch=3, filters=4).fit(X, [0, 1])
    close(model.predict_proba(X), np.full((2, 2), 0.5), dtype="float32")  # in which images are compared


def test_a_search_says_where_it_is_and_ends_in_time(capsys):
    model = PILAEImageClassifier(filters=8, verbose=1).fit(X[:80], Y[:80])
    said = capsys.readouterr()
    assert "candidate 1 of " in said.out + said.err
    with pilae.time_budget(0):
        short = PILAEImageClassifier(filters=8).fit(X[:80], Y[:80])
    tried = [row for row in short.search_ if row["loss"] is not None]
    assert 0 < len(tried) < len(model.search_)
    assert short.predict(X[:5]).shape == (5,)


def test_objects_are_found_to_be_the_same_in_the_mirror():
    """Letters and others that are drawn either way round with no difference in class."""
    rng = np.random.default_rng(0)
    shapes = np.where(rng.random((2, 8, 8)) > 0.5, 1.0, 0.0)
    kind = rng.integers(0, 2, 240)
    turned = np.where(rng.random(240) > 0.5, 1, -1)
    some = np.stack([shapes[k][:, ::t] for k, t in zip(kind, turned, strict=True)])
    some = some + 0.9 * rng.standard_normal(some.shape)
    model = PILAEImageClassifier(patch=3, pool=2, filters=16, encoder_ridge=0.1, contrast=0.1, threshold=0.5)
    assert model.fit(some, kind).mirror_


def test_some_images_to_compare_with():
    model = PILAEImageClassifier(**FIXED, anchors=100).fit(X, Y)
    assert model.anchors_.shape == (100, 64)
    whole = PILAEImageClassifier(**FIXED).fit(X, Y)
    later = IMAGES[300:500]
    assert np.mean(model.predict(later) == whole.predict(later)) > 0.9
    chooser = model.fitted_.head.output.loo.chooser
    assert np.count_nonzero(chooser) <= 300
    assert abs(model.loo_score_ - whole.loo_score_) < 0.1


def test_nearly_all_images_say_what_all_say():
    some, whole = (PILAEImageClassifier(**FIXED, anchors=count).fit(X.astype(float), Y) for count in (299, 300))
    assert len(some.anchors_) == 299
    later = IMAGES[300:600].astype(float)
    assert np.mean(some.predict(later) == whole.predict(later)) > 0.95


def test_predictions_do_not_depend_on_blocks_or_on_the_kind_of_pixels():
    model = PILAEImageClassifier(**FIXED).fit(X.astype(float), Y)
    later = IMAGES[300:360].astype(float)
    expected = model.decision_function(later)
    close(
        PILAEImageClassifier(**FIXED, block_rows=7).fit(X.astype(float), Y).decision_function(later), expected, **LOOSE
    )
    close(model.decision_function(later.reshape(60, 64)), expected, **LOOSE)
    close(np.concatenate([model.decision_function(part) for part in np.array_split(later, 4)]), expected, **LOOSE)


LOOSE = {"condition": 1e6, "terms": 300}
"""A ridge of a thousandth of the diagonal, on 300 images that are compared to four digits less than they have."""


def test_a_model_is_the_same_after_a_file(tmp_path):
    model = PILAEImageClassifier(**FIXED, anchors=50).fit(X, Y)
    model.save(tmp_path / "m.pilae")
    loaded = pilae.load(tmp_path / "m.pilae")
    np.testing.assert_array_equal(loaded.predict_proba(X[:40]), model.predict_proba(X[:40]))
    assert loaded.loo_score_ == model.loo_score_
    assert loaded.anchors_.dtype == np.uint8
    assert (tmp_path / "m.pilae").stat().st_size < 200_000  # images, not what is compared of them


def test_every_library_fits_alike(library):
    later = IMAGES[300:400].astype(float)
    expected = PILAEImageClassifier(**FIXED).fit(X.astype(float), Y)
    model = PILAEImageClassifier(**FIXED).fit(library(X.astype(float)), Y)
    close(
        to_numpy(model.decision_function(library(later))), expected.decision_function(later), condition=1e8, terms=300
    )
    assert model.loo_score_ == expected.loo_score_


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: PILAEImageClassifier(anchors=1).fit(X, Y), "The 'anchors' parameter of PILAEImageClassifier must be"),
        (lambda: PILAEImageClassifier(patch=0).fit(X, Y), "The 'patch' parameter of PILAEImageClassifier must be"),
        (lambda: PILAEImageClassifier().fit(X, None), "requires y to be passed"),
        (lambda: PILAEImageClassifier().fit(X, Y[:9]), "X has 300 rows but y has 9"),
        (lambda: PILAEImageClassifier(**FIXED).fit(X, Y).predict(np.ones((2, 9, 9))), "fitted on 8 x 8"),
        (lambda: PILAEImageClassifier(**FIXED).fit(X[0], Y[:8]).predict(np.ones((2, 9))), "9 features"),
        (lambda: PILAEImageClassifier().fit(np.ones((4, 5, 5)), [0, 1, 0, 1]), "the same"),
        (
            lambda: PILAEImageClassifier(image_shape=(3, 3)).fit(np.ones((5, 8)), Y[:5]),
            "Rows of 8 numbers are not images",
        ),
    ],
)
def test_what_is_wrong_is_said(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize("mirror", [False, True])
def test_images_compared_with_themselves_are_compared_once(mirror, monkeypatch):
    """Whatever the parts: the same as with a copy of them."""
    some = images(n=61, channels=1)
    kernel = kernel_of(some, mirror)
    cells = kernel.cells(some, NUMPY)
    for numbers in (1, 7 * 61, 10**6):
        monkeypatch.setattr(angles, "CACHED", numbers)
        K = kernel(cells, cells, NUMPY)
        np.testing.assert_array_equal(K, K.T)
        close(K, kernel(cells, cells._replace(), NUMPY), **COMPARED)


@pytest.mark.parametrize("mirror", [False, True])
def test_tiles_of_one_size_give_the_same(mirror, monkeypatch):
    some = images(n=61, channels=1)
    kernel = kernel_of(some, mirror)
    cells, few = kernel.cells(some, NUMPY), kernel.cells(some[:20], NUMPY)
    expected = kernel(cells, cells, NUMPY), kernel(few, cells, NUMPY)
    shapes, plain = set(), angles.inner_products
    monkeypatch.setattr(angles, "_tile", lambda space: 16)
    monkeypatch.setattr(angles, "inner_products", lambda a, b: shapes.add((len(a), len(b))) or plain(a, b))
    monkeypatch.setattr(angles, "in_parts", lambda f, n, work: f(slice(0, n)))
    close(kernel(cells, cells, NUMPY), expected[0], **COMPARED)
    assert shapes == {(16, 16)}
    close(kernel(few, cells, NUMPY), expected[1], **COMPARED)
    assert shapes == {(16, 16), (4, 16)}


def test_images_are_compared_once_by_several_threads(monkeypatch):
    some = images(n=61, channels=1)
    kernel = kernel_of(some)
    cells = kernel.cells(some, NUMPY)
    one = kernel(cells, cells, NUMPY)
    monkeypatch.setattr(angles, "in_parts", lambda f, n, work: [f(slice(k, min(k + 9, n))) for k in range(0, n, 9)])
    monkeypatch.setattr(angles, "CACHED", 5 * 61)
    close(kernel(cells, cells, NUMPY), one, **COMPARED)


@pytest.mark.parametrize(("n", "expected"), [(8000, 8000), (8001, 4000), (16_000, 8000), (60_000, 8000), (10**6, 4000)])
def test_anchors_of_many_images_are_those_there_is_time_for(n, expected):
    """At most half of the images: anchors are not scored."""
    assert PILAEImageClassifier()._anchors(n, NUMPY) == expected


@pytest.mark.parametrize("anchors", [40, 150, 299])
def test_the_order_of_images_does_not_matter_where_some_are_compared_with(anchors):
    """In another order of the anchors their features are other coordinates."""
    order = np.random.default_rng(0).permutation(len(X))
    one = PILAEImageClassifier(**FIXED, anchors=anchors, dtype="float64").fit(X, Y)
    other = PILAEImageClassifier(**FIXED, anchors=anchors, dtype="float64").fit(X[order], Y[order])
    assert one.ridge_ == other.ridge_
    condition = {"condition": 1e5 / one.ridge_, "terms": len(X)}  # of K and its jitter, and of the output layer
    close(one.decision_function(IMAGES[300:400]), other.decision_function(IMAGES[300:400]), **condition)


def test_without_time_the_structure_is_that_of_the_rules():
    with pilae.time_budget(0):
        model = PILAEImageClassifier(filters=8).fit(X, Y)
    assert (model.encoder_ridge_, model.mirror_, model.pool_, model.threshold_) == (0.1, False, 2, 1.0)
    assert sum(row["loss"] is not None for row in model.search_) == 1


def test_a_grid_has_no_more_cells_than_patches_have_places():
    model = PILAEImageClassifier(**FIXED | {"pool": 8}).fit(X, Y)
    assert model.pool_ == 6  # patches of 3 pixels in 8


def test_large_images_are_seen_in_steps_that_mirroring_keeps():
    assert [step_of(Shape(side, side, 1), 8, False) for side in (28, 95, 96, 224)] == [1, 1, 2, 4]
    assert [step_of(Shape(100, side, 1), 8, True) for side in (100, 101, 102)] == [2, 1, 2]
    large = np.random.default_rng(0).random((12, 1, 100)).astype("float32")
    large = np.repeat(large, 100, axis=1)
    kernel = build_kernel(AnglePlan((8,), 2, 0.1, 0.1, 0.5, True, pooling="smooth"), large[..., None], 8, 0)
    one, other = (kernel.cells(images[..., None], NUMPY) for images in (large, large[:, :, ::-1]))
    assert kernel.branches[0].layers[0].stride == 2
    close(kernel(other, one, NUMPY), kernel(one, one, NUMPY), dtype="float32", terms=64)  # pixels of a patch


def test_images_are_refitted_as_they_were_judged(monkeypatch):
    """A few more than can all be compared with one another still are, where the structure was judged so."""
    monkeypatch.setattr(image_room, "MOST_ALL", 250)
    model = PILAEImageClassifier(**FIXED).fit(X[:240], Y[:240])
    assert len(model._fit_again(X[:280], Y[:280]).anchors_) == 280
    assert len(PILAEImageClassifier(**FIXED).fit(X[:280], Y[:280]).anchors_) == 140


@pytest.mark.parametrize(
    ("parameters", "y", "words"),
    [
        ({"threshold": 100.0}, Y, "No filter answers anywhere in these images"),
        ({}, np.eye(2, dtype=int)[Y % 2], "PILAEImageClassifier names one class for each image"),
        ({"shift": 1, "anchors": 50}, Y, "anchors=50 are some of them"),
    ],
)
def test_what_cannot_be_said_of_images(parameters, y, words):
    with pytest.raises(ValueError, match=words):
        PILAEImageClassifier(**FIXED | parameters).fit(X, y)


def test_a_report_on_images_in_a_table():
    model = PILAEImageClassifier(**FIXED).fit(X, Y)
    rows = pd.DataFrame(IMAGES[300:500].reshape(200, -1))
    found = [model.report(some, TARGET[300:500]).figures for some in (rows, IMAGES[300:500])]
    assert found[0] == found[1]


def test_classes_that_differ_by_brightness_alone():
    """Contrast is normalised by the rule, and that takes away all that there is to see."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    images = np.clip(60 + 50 * y[:, None, None] + rng.normal(0, 25, (120, 12, 12)), 0, 255).astype(np.uint8)
    model = PILAEImageClassifier(filters=16, random_state=0).fit(images[:60], y[:60])
    assert model.contrast_ is None
    assert model.score(images[60:], y[60:]) > 0.9
    flat = np.repeat(y.astype(np.uint8) * 100, 144).reshape(120, 12, 12)
    assert PILAEImageClassifier(filters=16, random_state=0).fit(flat, y).loo_score_ > 0.9


def test_wrong_labels_get_a_larger_ridge():
    digits = load_digits()
    rng = np.random.default_rng(0)
    images, y = digits.images[:500], digits.target[:500].copy()
    wrong = rng.random(500) < 0.2
    y[wrong] = rng.integers(0, 10, wrong.sum())
    model = PILAEImageClassifier(filters=32, shift=0, random_state=0).fit(images, y)
    clean = PILAEImageClassifier(filters=32, shift=0, random_state=0).fit(images, digits.target[:500])
    assert model.ridge_ > 0.1 > clean.ridge_
    assert model.score(digits.images[1000:], digits.target[1000:]) > 0.9


def test_two_images_that_are_one_say_nothing_and_no_less():
    """A score is no less than nothing, whatever luck is taken off."""
    images = np.repeat(load_digits().images[:40], 2, axis=0)
    y = np.tile([0, 1], 40)
    assert PILAEImageClassifier(filters=16, random_state=0).fit(images, y).loo_score_ >= 0
