"""Patch layers: what they compute, in every library, without ever holding all responses."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

import pilae
from helpers import close, evaluation
from pilae import SHLN, ConvPILAE, PILAEClassifier
from pilae._network.branches import averages, cells_of, shares, smoothed
from pilae._network.patches import patches_of
from pilae._search.images import ImageSearch

DIGITS = load_digits()
FIXED = {"patch": 3, "pool": 2, "filters": 12, "encoder_ridge": 1.0, "contrast": 0.1, "mirror": False, "depth": 1}
FIXED |= {"pooling": "average"}


EVALUATED = {"condition": 500, "terms": 27}
"""What is pooled is at least 1e-6 where it is not zero, and its root is taken: 0.5 / sqrt(1e-6); sums over a patch."""

FITTED = {"condition": 9 * 500, "terms": 70 * 12 * 12}
"""The filters too: a Gram of nine pixels with a ridge of their mean square, summed over every position."""


def images(n=60, shape=(9, 8), channels=None, seed=0):
    """Smooth noise: neighbouring pixels are alike."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, shape[0] + 2, shape[1] + 2, channels or 1))
    X = X[:, :-2, :-2] + X[:, 1:-1, :-2] + X[:, :-2, 1:-1] + X[:, 1:-1, 1:-1] + X[:, 2:, 2:]
    return X if channels else X[..., 0]


def by_hand(model, image):
    """The features of one image, position by position."""
    features = []
    for branch in model.branches_:
        [layer] = branch.layers
        (a, b), (h, w) = layer.size, image.shape[:2]
        rows, columns = h - a + 1, w - b + 1
        H = np.zeros((rows, columns, layer.width))
        for i in range(rows):
            for j in range(columns):
                patch = image[i : i + a, j : j + b].ravel()
                patch = (patch - patch.mean()) / np.sqrt(patch.var() + layer.contrast)
                H[i, j] = np.maximum(patch @ layer.weights + layer.bias, 0)
        for k in range(branch.grid[0]):
            for m in range(branch.grid[1]):
                top, bottom = k * rows // branch.grid[0], int(np.ceil((k + 1) * rows / branch.grid[0]))
                left, right = m * columns // branch.grid[1], int(np.ceil((m + 1) * columns / branch.grid[1]))
                pooled = H[top:bottom, left:right].mean(axis=(0, 1))
                features.append(np.sqrt(np.where(pooled > 1e-6, pooled, 0.0)))
    return np.concatenate(features)


@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize("patch", [3, [2, 4]])
def test_features_are_those_computed_by_hand(channels, patch):
    X = images(channels=channels)
    model = ConvPILAE(**FIXED | {"patch": patch}).fit(X)
    F = model.transform(X[:3])
    assert F.shape == (3, model._n_features_out)
    assert F.shape[1] == 4 * 24 * (1 if patch == 3 else 2)
    for row, image in zip(F, X, strict=False):
        close(row, by_hand(model, image[..., None] if channels is None else image), **EVALUATED)


def test_filters_are_pseudoinverse_rows_of_patches_with_unit_responses():
    """(X'X + eps I)^-1 a for patches a, scaled so that responses have unit variance."""
    X = images(80)
    model = ConvPILAE(**FIXED).fit(X)
    [layer] = model.branches_[0].layers
    W = layer.weights[:, :12]
    P = patches_of(X[..., None], (3, 3))
    P = P - P.mean(axis=1, keepdims=True)
    P /= np.sqrt((P**2).mean(axis=1, keepdims=True) + layer.contrast)
    np.testing.assert_allclose((P @ W).std(axis=0), 1.0, rtol=0.05)  # the layer saw a sample of them
    C = np.cov(P.T, bias=True)
    back = (C + np.trace(C) / 9 * np.eye(9)) @ W  # proportional to centred patches
    A = P - P.mean(axis=0)
    cosines = (back / np.linalg.norm(back, axis=0)).T @ (A / np.linalg.norm(A, axis=1, keepdims=True)).T
    assert cosines.max(axis=1).min() > 0.995
    np.testing.assert_array_equal(layer.weights[:, 12:], -W)


def test_smooth_cells_are_averages_over_moved_ones():
    """Each moved by up to half a cell either way (the first and last half), where no edge is near."""
    moves, counts = range(-5, 6), [0.5, *[1.0] * 9, 0.5]
    plain, smooth = (shares(50, 5, pooling) for pooling in ("average", "smooth"))
    moved = sum(count * np.roll(plain, move, axis=1) for move, count in zip(moves, counts, strict=True))
    close(smooth[1:-1], moved[1:-1] / 10)
    close(smooth.sum(axis=1), np.ones(5))
    close(shares(7, 3, "smooth"), shares(7, 3, "smooth")[::-1, ::-1])  # from either side
    np.testing.assert_array_equal(shares(4, 4, "smooth"), np.eye(4))


@pytest.mark.parametrize("grid", [(1, 1), (2, 3), (7, 6)])
def test_smooth_pooling_is_by_the_shares_of_positions(grid):
    H = np.random.default_rng(0).random((3, 7, 6, 4))
    F = smoothed(H, grid)
    by_hand = np.einsum("ar,bc,nrcp->nabp", shares(7, grid[0], "smooth"), shares(6, grid[1], "smooth"), H)
    close(F, by_hand.reshape(3, -1, 4), terms=42)
    close(F, averages(7, 6, grid, "smooth") @ H.reshape(3, 42, 4), terms=42)


@pytest.mark.parametrize("pooling", ["smooth", "average"])
@pytest.mark.parametrize("tied", [False, True])
def test_pairs_of_filters_are_averaged_as_if_each_stood_alone(pooling, tied):
    X = images()
    [branch] = ConvPILAE(**FIXED | {"pooling": pooling, "tied": tied}).fit(X).branches_
    [layer] = branch.layers
    assert layer.has_pairs
    maps = X.reshape(len(X), *branch.shape)
    F = layer.unclipped(np.mean(layer.clipped(maps), axis=1))
    close(F, np.mean(layer(maps), axis=1), terms=layer.weights.shape[0])
    W, bias = layer.weights.copy(), layer.bias
    W[:, -1] = 0.0  # without its partner
    assert not replace(layer, weights=W, bias=bias).has_pairs


def test_plain_pooling_is_kept_where_it_is_better():
    """The class says in which quarter a bright patch is, however near it is to the border of another quarter."""
    rng = np.random.default_rng(0)
    pictures, quarter = 0.1 * rng.standard_normal((400, 8, 8)), rng.integers(0, 4, 400)
    for image, q in zip(pictures, quarter, strict=True):
        row, column = rng.choice([0, 3], 2)
        image[4 * (q // 2) + row, 4 * (q % 2) + column] += 3.0
    given = FIXED | {"pooling": "auto", "patch": 1, "contrast": None, "threshold": 0.25, "filters": 2}
    model = ConvPILAE(**given).fit(pictures, quarter)
    assert model.pooling_ == "average"
    assert {row["pooling"] for row in model.search_} == {"smooth", "average"}
    assert ConvPILAE(**given).fit(pictures).pooling_ == "smooth"


@pytest.mark.parametrize("pooling", ["average", "smooth"])
def test_every_library_gives_the_same_features(library, pooling):
    X, fixed = images(), FIXED | {"pooling": pooling}
    expected = ConvPILAE(**fixed).fit(X).transform(X)
    model = ConvPILAE(**fixed).fit(library(X))
    F = model.transform(library(X))
    assert library.owns(F)
    close(library.numpy(F), expected, **FITTED)
    back = model.reconstruct(library(X[:4]))
    assert library.owns(back)
    assert tuple(back.shape) == (4, 9, 8)


@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "max"},
        {"pooling": "smooth"},
        {"depth": 2},
        {"depth": 3},
        {"mirror": True},
        {"tied": True},
        {"stride": 2},
    ],
)
def test_blocks_and_order_do_not_matter(options):
    X = images(70, (12, 12))
    model = ConvPILAE(**FIXED | options).fit(X)
    F = model.transform(X)
    assert np.isfinite(F).all()
    close(ConvPILAE(**FIXED | options, block_rows=7).fit(X).transform(X), F, **FITTED)
    order = np.random.default_rng(0).permutation(len(X))
    close(ConvPILAE(**FIXED | options).fit(X[order]).transform(X), F, **FITTED)


def test_integers_floats_and_rows_are_the_same_images():
    X = (DIGITS.images * 15).astype(np.uint8)
    F = ConvPILAE(**FIXED).fit(X).transform(X)
    assert F.dtype == np.float32
    floats = X.astype("float32")
    np.testing.assert_array_equal(ConvPILAE(**FIXED).fit(floats).transform(floats), F)
    rows = X.reshape(len(X), -1)
    np.testing.assert_array_equal(ConvPILAE(**FIXED).fit(rows).transform(rows), F)
    strip = ConvPILAE(**FIXED, image_shape=(4, 16)).fit(rows)
    assert strip.image_shape_ == (4, 16, 1)
    assert ConvPILAE(**FIXED).fit(rows[:, :50]).image_shape_ == (1, 50, 1)


def test_mirrored_images_have_the_same_features():
    X = images(channels=3)
    for pooling in ("average", "smooth"):
        model = ConvPILAE(**FIXED | {"mirror": True, "pooling": pooling}).fit(X)
        close(model.transform(X[:, :, ::-1]), model.transform(X), **EVALUATED)
    assert not np.allclose(ConvPILAE(**FIXED).fit(X).transform(X[:, :, ::-1]), ConvPILAE(**FIXED).fit(X).transform(X))


def test_a_layer_sees_the_halved_maps_of_the_one_below():
    X = images(40, (30, 30))
    [branch] = ConvPILAE(**FIXED | {"depth": 3, "patch": 5, "stride": 2}).fit(X).branches_
    assert [(layer.size, layer.stride) for layer in branch.layers] == [((5, 5), 2), ((4, 4), 1), ((1, 1), 1)]
    assert [layer.channels for layer in branch.layers] == [1, 128, 128]  # both signs of 64 filters
    assert branch.maps(X[..., None].astype("float64")).shape == (40, 1, 1, 128)  # 30 pixels: 13 steps, 6; 3 steps, 1


def test_more_layers_are_tried_while_they_help(monkeypatch):
    y = np.arange(40) % 2
    tried: list[int] = []

    def loss(self, plan):
        tried.append(plan.depth)
        return 1.0 / plan.depth

    monkeypatch.setattr(ImageSearch, "loss", loss)
    monkeypatch.setattr(ImageSearch, "left", lambda self: [])
    kept = {name: value for name, value in FIXED.items() if name != "depth"}
    assert ConvPILAE(**kept, threshold=0.25).fit(images(40, (30, 30)), y).depth_ == 3
    assert max(tried) == 3
    assert ConvPILAE(**kept, threshold=0.25).fit(images(40, (20, 20)), y).depth_ == 2


def test_patches_of_large_images_are_further_apart():
    def stride(*size):
        [branch] = ConvPILAE(**FIXED).fit(images(10, size)).branches_
        return branch.layers[0].stride

    assert (stride(60, 95), stride(100, 100), stride(1, 1000)) == (1, 2, 1)


def test_cells_cover_all_positions():
    assert cells_of(7, 3) == [(0, 3), (2, 5), (4, 7)]
    assert cells_of(6, 3) == [(0, 2), (2, 4), (4, 6)]
    close(averages(7, 5, (3, 2), "average").sum(axis=1), np.ones(6), terms=35)


def test_reconstruction_improves_with_filters():
    X = DIGITS.images
    errors = [
        float(np.mean((ConvPILAE(**FIXED | {"filters": k}).fit(X).reconstruct(X) - X) ** 2) / X.var())
        for k in (1, 4, 30)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.01


def test_responses_are_never_held_whole():
    X = np.random.default_rng(0).integers(0, 255, (600, 28, 28)).astype(np.uint8)
    model = ConvPILAE(patch=5, filters=100, pool=2, encoder_ridge=1.0, mirror=False, depth=1).fit(X)
    whole = 600 * 24 * 24 * 200 * 4
    tracemalloc.start()
    model.transform(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < whole / 2


@pytest.fixture(scope="module")
def digits():
    model = make_pipeline(ConvPILAE(max_features=400), PILAEClassifier(depth=0, head="ridge"))
    return model.fit(DIGITS.images[:1000], DIGITS.target[:1000])


def test_structure_is_chosen_by_leave_one_out(digits):
    conv = digits[0]
    assert digits.score(DIGITS.images[1000:], DIGITS.target[1000:]) > 0.95
    [chosen] = [row for row in conv.search_ if row["chosen"]]
    assert chosen["error"] <= 1.01 * min(row["error"] for row in conv.search_)
    assert {row["mirror"] for row in conv.search_} == {False, True}
    assert chosen["pool"] == conv.pool_
    assert conv._n_features_out <= 400
    assert ConvPILAE().fit(DIGITS.images).search_ == []  # nothing to choose by


def test_mirrors_are_found_where_left_and_right_mean_nothing():
    """A bright bar at the left or the right against one at the top or the bottom."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12, 12))
    kind, side = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    for image, upright, last in zip(X, kind, side, strict=True):
        line = -2 if last else 1
        if upright:
            image[:, line] += 1.5
        else:
            image[line, :] += 1.5
    assert ConvPILAE(patch=3, pool=3, encoder_ridge=1.0, contrast=0.1, depth=1, filters=20).fit(X, kind).mirror_


def test_a_head_can_follow_new_images(digits):
    conv = digits[0]
    head = PILAEClassifier(depth=0, ridge=1e-2, head=SHLN(width=50)).fit(
        conv.transform(DIGITS.images[:300]), DIGITS.target[:300]
    )
    before = head.score(conv.transform(DIGITS.images[1000:]), DIGITS.target[1000:])
    head.partial_fit(conv.transform(DIGITS.images[300:1000]), DIGITS.target[300:1000])
    assert head.score(conv.transform(DIGITS.images[1000:]), DIGITS.target[1000:]) > before


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mirror": True},
        {"pooling": "max"},
        {"pooling": "smooth"},
        {"depth": 2},
        {"depth": 3, "stride": 2},
        {"patch": [2, 4]},
        {"contrast": None, "power": 0.7},
    ],
)
def test_onnx_gives_the_same_features(options, tmp_path):
    import onnxruntime

    X = images(50, (11, 12), channels=2)
    model = ConvPILAE(**FIXED | options).fit(X)
    model.to_onnx(tmp_path / "c.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "c.onnx", providers=["CPUExecutionProvider"])
    [F] = session.run(None, {"X": X.reshape(50, -1).astype("float32")})
    close(F, model.transform(X), **evaluation(model.transform, X, "float32"))


@pytest.mark.parametrize("shape", [(64,), (8, 8)])
def test_a_pipeline_goes_to_onnx(digits, shape):
    import onnxruntime
    from skl2onnx import to_onnx

    from pilae import export

    export.register()
    rows = DIGITS.images[1000:].reshape(-1, *shape).astype("float32")
    made = to_onnx(digits, rows[:1], options={"zipmap": False}, target_opset=export.OPSET)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    labels, proba = session.run(None, {"X": rows})
    np.testing.assert_array_equal(labels, digits.predict(rows))
    close(proba, digits.predict_proba(rows), **evaluation(digits.predict_proba, rows, "float32"))


def test_saved_and_loaded(digits, tmp_path):
    digits[0].save(tmp_path / "c.pilae")
    again = pilae.load(tmp_path / "c.pilae")
    np.testing.assert_array_equal(again.transform(DIGITS.images), digits[0].transform(DIGITS.images))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ConvPILAE().fit(np.ones((5, 4, 4, 3, 2))), "got 5D array instead"),
        (lambda: ConvPILAE().fit(np.ones((5, 0, 4))), "no pixels"),
        (lambda: ConvPILAE(image_shape=(3, 3)).fit(np.ones((5, 8))), "Rows of 8 numbers are not images"),
        (lambda: ConvPILAE(patch=0).fit(images()), "The 'patch' parameter of ConvPILAE must be"),
        (lambda: ConvPILAE(pool="4").fit(images()), "The 'pool' parameter of ConvPILAE must be"),
        (lambda: ConvPILAE(depth=4).fit(images()), "The 'depth' parameter of ConvPILAE must be"),
        (lambda: ConvPILAE().fit(images(), [1, 2]), "X has 60 images but y has 2 targets"),
        (lambda: ConvPILAE(**FIXED).fit(images()).transform(images(shape=(8, 8))), "fitted on 9 x 8"),
        (lambda: ConvPILAE(**FIXED).fit(np.ones((6, 8, 8))), "the same"),
        (lambda: ConvPILAE(**FIXED | {"patch": 1}).fit(images()), "hold nothing but one level"),
        (
            lambda: ConvPILAE(**FIXED).fit(np.ones((9, 8, 8)) * np.arange(9)[:, None, None]),
            "hold nothing but one level",
        ),
        (lambda: ConvPILAE().fit(images(), 3), "y has 1 targets"),
        (lambda: ConvPILAE().fit(images(), np.full(60, np.nan)), "y contains NaN"),
        (lambda: ConvPILAE().fit(images()[:0]), "0 sample"),
    ],
)
def test_errors_are_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


# ------------------------------------------------------------------------------------------------- to look at


def test_a_report_shows_filters_and_what_they_keep(digits, tmp_path):
    report = digits[0].report(DIGITS.images[1000:])
    page = report.to_html()
    assert page.count("data:image/png;base64") == len(digits[0].branches_) + 1
    assert "Why these" in page
    report.save(tmp_path / "r.json")
    report.save(tmp_path / "r.md")
    assert report.summary["reconstruction"]["error"] < 0.5
    colour = ConvPILAE(**FIXED).fit(images(channels=3))
    assert colour.report(images(channels=3)).to_html().count("data:image/png;base64") == 2


def test_filters_are_drawn(digits):
    from pilae.plot import FiltersDisplay

    display = FiltersDisplay.from_estimator(digits[0], count=9)
    assert display.filters.shape[0] == 9
    assert display.filters.min() >= 0
    assert display.filters.max() <= 1
    assert ConvPILAE(**FIXED).fit(images(channels=3)).report().summary["filters"]


def test_odd_parameters_and_shapes():
    X = images(40, (6, 20))
    assert ConvPILAE(**FIXED | {"contrast": 0.0}).fit(X).transform(X).shape == (40, 96)
    narrow = ConvPILAE(**FIXED | {"patch": [4, 50, 50], "pool": 9}).fit(X)
    assert narrow.patch_ == [4, 20]  # as large as the image, and once
    assert narrow.pool_ == 9
    assert [branch.grid for branch in narrow.branches_] == [(3, 9), (1, 1)]
    np.testing.assert_array_equal(narrow.reconstruct(X[:2].tolist()), narrow.reconstruct(X[:2]))
    assert ConvPILAE(**FIXED).fit(X, np.zeros(40)).search_ == []
    few = ConvPILAE(max_features=40).fit(images(60, (12, 12)), np.arange(60) % 2)
    assert few._n_features_out <= 40
    assert (
        ConvPILAE(depth=1, mirror=False).fit(images(60), np.arange(60)).search_
    )  # judged as numbers, without a warning


@pytest.mark.slow  # tests/torture/load.py looks at memory every time
def test_memory_does_not_grow_with_patches_or_depth():
    X = np.random.default_rng(0).integers(0, 255, (400, 40, 40)).astype(np.uint8)
    for options in ({"patch": 9, "filters": 1}, {"depth": 2, "filters": 2}):
        model = ConvPILAE(**FIXED | options).fit(X[:100])
        for method in (model.transform, model.reconstruct):
            tracemalloc.start()
            method(X)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < 200e6, (options, method)


def test_filters_are_as_many_as_columns_allow():
    model = ConvPILAE(max_features=4000, patch=3, pool=2, encoder_ridge=1.0, threshold=0.25, depth=1, mirror=False)
    model.set_params(contrast=0.1, pooling="average").fit(images(200, (12, 12)), np.arange(200) % 2)
    assert model.filters_ == 500


def test_brightness_is_seen_where_it_tells_classes_apart():
    y = np.arange(120) % 3
    levels = np.clip(60 + 50 * y[:, None, None] + np.random.default_rng(0).normal(0, 25, (120, 12, 12)), 0, 255).astype(
        np.uint8
    )
    model = make_pipeline(ConvPILAE(max_features=200), PILAEClassifier(depth=0, head="ridge"))
    assert model.fit(levels[:60], y[:60]).score(levels[60:], y[60:]) > 0.9
    assert model[0].contrast_ is None
