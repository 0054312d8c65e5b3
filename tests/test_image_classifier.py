"""`PILAEImageClassifier` as people use it: what it keeps, what it warns of, what it refuses."""

import pickle
import warnings

import numpy as np
import pytest
import skl2onnx

import pilae
from pilae import ConvPILAE, PILAEImageClassifier
from pilae._network import compared
from test_angles import FIXED, IMAGES, X, Y

LATER = IMAGES[300:400]


@pytest.mark.parametrize("anchors", ["auto", 100])
def test_a_model_has_images_of_its_own(anchors, tmp_path):
    """What happens to the caller's array after `fit` is no matter of the model, nor of its files."""
    mine = X.copy()
    model = PILAEImageClassifier(**FIXED, anchors=anchors).fit(mine, Y)
    expected = model.predict_proba(LATER)
    assert not np.shares_memory(mine, model.anchors_)
    mine[:] = 0
    model.save(tmp_path / "m.pilae")
    for again in (model, pilae.load(tmp_path / "m.pilae"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(LATER), expected)


def test_what_is_compared_with_is_made_once_where_there_is_room(monkeypatch):
    model = PILAEImageClassifier(**FIXED, anchors=100).fit(X, Y)
    made, expected = [], model.predict(LATER)
    cells = compared.AngleKernel.cells

    def counted(self, images, *rest):
        made.append(int(images.shape[0]))
        return cells(self, images, *rest)

    monkeypatch.setattr(compared.AngleKernel, "cells", counted)
    for _ in range(2):
        model.predict(LATER[:1])
    assert made == [1, 1]
    monkeypatch.setattr(compared, "KEPT_BYTES", {False: 0, True: 0})
    model = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.predict(LATER), expected)
    assert made[2:] == [100, 100]
    model.predict(LATER[:1])
    assert made[4:] == [100, 1]


def test_the_luck_of_having_been_chosen_is_taken_off_the_score():
    """Many structures are tried on few images: the best on random labels is above chance, and the score is not."""
    rng, scores, plain = np.random.default_rng(0), [], []
    for _ in range(6):
        model = PILAEImageClassifier(filters=8, shift=0).fit(rng.random((60, 8, 8)), rng.permutation(60) % 2)
        scores.append(model.loo_score_)
        plain.append(model.loo_score_ + model.fit_stats_["optimism"])
    assert np.mean(plain) > np.mean(scores) + 0.02
    assert abs(np.mean(scores) - 0.5) < 4 * 0.5 / 360**0.5
    assert PILAEImageClassifier(**FIXED).fit(X, Y).fit_stats_["optimism"] == 0


@pytest.mark.parametrize(("then", "now"), [(1, 1 / 16), (1 / 16, 1)])
def test_pixels_on_another_scale_are_warned_of(then, now):
    model = PILAEImageClassifier(**FIXED).fit(X * then, Y)
    with pytest.warns(UserWarning, match=r"The largest pixel is .*, and it was .* in the images of fit") as said:
        model.predict(LATER * now)
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(LATER * then)
        model.predict(0 * LATER)


@pytest.mark.parametrize("estimator", [PILAEImageClassifier(**FIXED), ConvPILAE(filters=4, patch=3, pool=2)])
def test_arrays_of_another_layout_are_refused_in_one_sentence(estimator):
    name = type(estimator).__name__
    colour = np.random.default_rng(0).random((30, 3, 12, 12))
    with pytest.raises(ValueError, match=r"the channels seem to stand first. Give X.transpose\(0, 2, 3, 1\)"):
        estimator.fit(colour, Y[:30])
    model = estimator.fit(colour.transpose(0, 2, 3, 1), Y[:30])
    ask = model.predict if hasattr(model, "predict") else model.transform
    with pytest.raises(ValueError, match=r"X has the shape of one image, \(12, 12, 3\): .* X\[None\]"):
        ask(colour[0].transpose(1, 2, 0))
    words = rf"with 1 channel\(s\), but {name} was fitted on 12 x 12 with 3: .* those channels"
    with pytest.raises(ValueError, match=words):
        ask(colour[:, 0])
    holes = X[:20].astype(float)
    holes[3, 2, 2] = np.nan
    with pytest.raises(ValueError, match="X contains NaN, and pixels are numbers"):
        estimator.fit(holes, Y[:20])
    with pytest.raises(ValueError, match=r"image_shape=\(4, 4\) is for images that come as rows"):
        type(estimator)(**estimator.get_params() | {"image_shape": (4, 4)}).fit(X[:20], Y[:20])


def test_rows_that_are_no_square_are_strips_and_said():
    rows = np.tile(X[:40].reshape(40, -1), 3)
    with pytest.warns(UserWarning, match=r"Rows of 192 numbers are no square images.*image_shape="):
        model = PILAEImageClassifier(**FIXED).fit(rows, Y[:40])
    assert model.image_shape_ == (1, 192, 1)
    model.predict(rows)


def test_signals_of_many_channels_are_strips():
    signals = np.random.default_rng(0).random((40, 1, 50, 9))
    assert ConvPILAE(filters=4, patch=3, pool=2).fit(signals, Y[:40]).image_shape_ == (1, 50, 9)


def test_one_image_of_one_channel_is_not_rows():
    model = PILAEImageClassifier(**FIXED).fit(X, Y)
    with pytest.raises(ValueError, match=r"X has the shape of one image, \(8, 8\)"):
        model.predict(X[0])
    assert model.predict(X[:1].reshape(1, 64)) == model.predict(X[:1])


def test_onnx_is_refused_in_one_sentence_wherever_it_is_asked_for(tmp_path):
    model = PILAEImageClassifier(**FIXED).fit(X, Y)
    pilae.export.register()
    for convert in (
        lambda: model.to_onnx(tmp_path / "m.onnx"),
        lambda: skl2onnx.to_onnx(model, X[:1].reshape(1, 64).astype("float32")),
    ):
        with pytest.raises(
            ValueError, match=r"A PILAEImageClassifier is not written as ONNX.*make_pipeline\(ConvPILAE"
        ):
            convert()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["partial_fit", "forget", "merge"])
def test_what_needs_sums_is_refused_in_one_sentence(name):
    assert not hasattr(PILAEImageClassifier(), name)
    with pytest.raises(AttributeError, match=rf"PILAEImageClassifier has no {name}: .*ConvPILAE\(\)"):
        getattr(PILAEImageClassifier(), name)


def test_images_that_cannot_be_fitted_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match="of several sizes"):
        PILAEImageClassifier().fit([np.zeros((8, 8)), np.zeros((5, 8))], [0, 1])
    with pytest.raises(ValueError, match=r"one class only .*: check the targets\.$"):
        PILAEImageClassifier().fit(X, np.zeros(len(X)))


def test_a_report_on_new_images_needs_their_classes():
    with pytest.raises(ValueError, match=r"report\(X, y\)"):
        PILAEImageClassifier(**FIXED).fit(X, Y).report(LATER)


def test_a_kernel_is_shown_in_one_line():
    said = repr(PILAEImageClassifier(**FIXED).fit(X, Y).kernel_)
    assert said.startswith("AngleKernel(1 patch sizes, 96 responses an image, inner=")


def test_the_stages_of_the_last_fit_are_told(capsys):
    PILAEImageClassifier(**FIXED, anchors=100, verbose=1).fit(X, Y)
    said = capsys.readouterr().err
    for stage in ("responses of 100 images", "comparing images with 100: 0 of 300", "output layer, 300 images"):
        assert stage in said
