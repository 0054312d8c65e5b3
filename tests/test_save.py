"""One file: what was saved comes back, nothing else does, and nothing in it is run."""

import errno
import hashlib
import json
import lzma
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

import pilae
from helpers import close, rounding
from pilae import (
    SHLN,
    ConvPILAE,
    PILAEClassifier,
    PILAERegressor,
    PILAutoencoder,
    PILClassifier,
    PILRegressor,
    StackedPILAE,
    save,
)
from pilae._data.check import Columns
from pilae._data.targets import Classes

FILES = Path(__file__).parent / "behaviour" / "files"
X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "<b>versi</b>", "virginica"])


def roundtrip(model, path, **options):
    model.save(path, **options)
    return pilae.load(path)


@pytest.mark.parametrize(
    "model",
    [
        PILAEClassifier(random_state=0),
        PILAEClassifier(width=[3, 3], dtype="float32", head=SHLN(width=20)),
        PILAEClassifier(head="ridge"),
        PILAEClassifier(head="softmax", input_scaling="asinh"),
        PILAEClassifier(depth=1, head=LogisticRegression(max_iter=500)),
        PILClassifier(),
    ],
    ids=lambda model: repr(model)[:40],
)
@pytest.mark.parametrize("labels", [y, NAMES[y], NAMES[y].astype(object)], ids=["numbers", "text", "objects"])
def test_classifiers_come_back(model, labels, tmp_path):
    again = roundtrip(model.fit(X, labels), tmp_path / "m.pilae")
    assert again.classes_.tolist() == model.classes_.tolist()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.get_params().keys() == model.get_params().keys()
    assert getattr(again, "loo_score_", None) == getattr(model, "loo_score_", None)


@pytest.mark.parametrize("model", [PILAERegressor(random_state=0), PILRegressor()])
def test_regressors_come_back(model, tmp_path):
    data, target = load_diabetes(return_X_y=True)
    again = roundtrip(model.fit(data, target), tmp_path / "m.pilae")
    np.testing.assert_array_equal(again.predict(data), model.predict(data))
    if isinstance(model, PILAERegressor):
        np.testing.assert_array_equal(again.predict_interval(data), model.predict_interval(data))


@pytest.mark.parametrize("model", [StackedPILAE(width=[30, 20]), PILAutoencoder(width=16)])
def test_transformers_come_back_with_their_decoders(model, tmp_path):
    data = load_digits().data
    again = roundtrip(model.fit(data), tmp_path / "m.pilae")
    H = again.transform(data)
    np.testing.assert_array_equal(H, model.transform(data))
    np.testing.assert_array_equal(again.inverse_transform(H), model.inverse_transform(H))
    assert [layer.rank for layer in again.layers_] == [layer.rank for layer in model.layers_]
    assert again.layers_ is again.network_.layers


def test_a_loaded_model_learns_on(tmp_path):
    model = PILAEClassifier(random_state=0).fit(X[::2], y[::2])
    again = roundtrip(model, tmp_path / "m.pilae")
    for each in (model, again):
        each.partial_fit(X[1::2], y[1::2])
        each.forget(X[:2], y[:2])
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_without_statistics_the_file_is_small_and_predicts(tmp_path):
    model = PILAEClassifier(width=[3], random_state=0, head=SHLN(width=40)).fit(X, y)
    small = roundtrip(model, tmp_path / "small.pilae", statistics=False)
    model.save(tmp_path / "whole.pilae")
    assert (tmp_path / "small.pilae").stat().st_size < 0.7 * (tmp_path / "whole.pilae").stat().st_size
    np.testing.assert_array_equal(small.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="keep_statistics"):
        small.partial_fit(X[:5], y[:5])
    assert model.head_.output.moments is not None


def test_a_model_from_torch_comes_back_in_numpy(tmp_path):
    import torch

    model = PILAEClassifier(width=[3], ridge=1e-2, random_state=0, head=SHLN(width=20)).fit(torch.asarray(X), y)
    again = roundtrip(model, tmp_path / "m.pilae")
    close(again.predict_proba(X), model.predict_proba(torch.asarray(X)).numpy(), **rounding(model))


def test_names_of_columns_come_back(tmp_path):
    frame = load_iris(as_frame=True).data
    again = roundtrip(PILAEClassifier().fit(frame, y), tmp_path / "m.pilae")
    assert again.feature_names_in_.tolist() == list(frame.columns)
    again.predict(frame)


class Own(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_types_that_would_need_code_are_refused(tmp_path):
    path = tmp_path / "m.pilae"
    with pytest.raises(ValueError, match=r"Own, which is not among the types that are safe"):
        PILAEClassifier(depth=0, head=Own()).fit(X, y).save(path)
    with pytest.raises(ValueError, match=r"model\.random_state is a numpy\.random"):
        PILAEClassifier(random_state=np.random.RandomState(0)).fit(X, y).save(path)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.pilae"
    PILAEClassifier().fit(X, y).save(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="safe"):
        PILAEClassifier(depth=0, head=Own()).fit(X, y).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def rewritten(path, change, checked=True):
    """The same file with another header."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["header.json"])
    change(header, members)
    members["header.json"] = json.dumps(header).encode()
    if checked:
        members["header.sha256"] = hashlib.sha256(members["header.json"]).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def test_newer_foreign_and_damaged_files_are_refused(tmp_path):
    path = tmp_path / "m.pilae"
    model = PILAEClassifier().fit(X, y)

    def of(change):
        model.save(path)
        rewritten(path, change)
        pilae.load(path)

    with pytest.raises(ValueError, match=r"in format 4, and this version reads format 3"):
        of(lambda header, members: header.update(format=4))
    for wrong in (-1, "x", None):
        with pytest.raises(ValueError, match="not a model that pilae has saved"):
            of(lambda header, members, wrong=wrong: header.update(format=wrong))
    for tree in ({}, {"model": 3}, {"model": {"object": 10**6}}, {"model": {"object": "x"}}, {"model": {"object": -1}}):
        with pytest.raises(ValueError, match=r"is damaged|not among the types"):
            of(lambda header, members, tree=tree: header.update(tree=tree))
    with pytest.raises(ValueError, match="is damaged"):
        of(lambda header, members: header["objects"].__setitem__(0, {"list": [{"object": 0}]}))
    with pytest.raises(ValueError, match="not a model that pilae has saved"):
        of(lambda header, members: header.update(file="other"))
    with pytest.raises(ValueError, match="is not what was saved"):
        of(lambda header, members: members.update({"0.npy": members["0.npy"][:-1] + bytes([members["0.npy"][-1] ^ 1])}))
    with pytest.raises(ValueError, match=r"written by pilae .* holds a 'Popen', which this version does not know"):
        of(
            lambda header, members: (
                header["objects"].append({"kind": "Popen", "fields": {}})
                or header["tree"].update(model={"object": len(header["objects"]) - 1})
            )
        )
    path.write_bytes(b"hello")
    with pytest.raises(ValueError, match="not a model that pilae has saved"):
        pilae.load(path)
    with pytest.raises(FileNotFoundError):
        pilae.load(tmp_path / "nowhere")


def test_a_changed_header_is_noticed(tmp_path):
    path = tmp_path / "m.pilae"
    PILAEClassifier().fit(X, y).save(path)
    rewritten(path, lambda header, members: header["versions"].update(numpy="0"), checked=False)
    with pytest.raises(ValueError, match="its header is not what was saved"):
        pilae.load(path)


def test_flipped_bytes_give_a_sentence(tmp_path):
    path = tmp_path / "m.pilae"
    model = PILAEClassifier(depth=0, head="ridge").fit(X, y)
    model.save(path)
    whole = path.read_bytes()
    for at in np.random.default_rng(0).integers(0, len(whole), 200):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            again = pilae.load(path)
        except ValueError:
            continue
        # a byte of the archive that says nothing, such as a date
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        PILAEClassifier().save(tmp_path / "m.pilae")
    assert not list(tmp_path.iterdir())


def test_links_are_followed_and_devices_left_alone(tmp_path):
    model = PILAEClassifier().fit(X, y)
    (tmp_path / "link.pilae").symlink_to(tmp_path / "real.pilae")
    model.save(tmp_path / "link.pilae")
    assert (tmp_path / "link.pilae").is_symlink()
    assert (tmp_path / "real.pilae").is_file()
    model.save("/dev/null")
    assert not Path("/dev/null").is_file()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        model.save(tmp_path)
    with pytest.raises(OSError, match="Cannot write"):
        model.save(tmp_path / "no" / "folder.pilae")


def test_a_pickle_inside_is_not_run(tmp_path):
    path = tmp_path / "m.pilae"
    PILAEClassifier().fit(X, y).save(path)

    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "owned"), "w"))

    def change(header, members):
        import io

        file = io.BytesIO()
        np.save(file, np.array([Evil()], dtype=object), allow_pickle=True)
        assert pickle.dumps(Evil())
        members["0.npy"] = file.getvalue()
        header["members"]["0.npy"] = hashlib.sha256(file.getvalue()).hexdigest()

    rewritten(path, change)
    with pytest.raises(pilae.ModelFileError, match="makes no sense"):
        pilae.load(path)
    assert not (tmp_path / "owned").exists()


def test_a_file_cannot_claim_more_than_it_has(tmp_path):
    """Bombs, members read again and again, shapes without bytes, ways of packing that need memory of their own."""
    path = tmp_path / "m.pilae"
    model = PILAEClassifier(width=[3]).fit(X, y)

    def claims(header, members):
        member = members["0.npy"].replace(b"(", b"(9", 1)
        members["0.npy"], header["members"]["0.npy"] = member, hashlib.sha256(member).hexdigest()

    def again(header, members):
        for item in header["objects"]:
            if "array" in item:
                item["array"] = "0.npy"

    for change in (claims, again):
        model.save(path)
        rewritten(path, change)
        with pytest.raises(pilae.ModelFileError, match="makes no sense"):
            pilae.load(path)
    for content, packing in ((bytes(300 * 2**20), zipfile.ZIP_DEFLATED), (b"", zipfile.ZIP_LZMA)):
        model.save(path)
        with zipfile.ZipFile(path, "a", packing) as archive:
            archive.writestr("more.npy", content)
        with pytest.raises(pilae.ModelFileError, match="not a model that pilae has saved"):
            pilae.load(path)


def test_parts_that_do_not_fit_together_are_refused(tmp_path):
    path = tmp_path / "m.pilae"
    for model in (PILAEClassifier(width=[3], head=SHLN(width=5)), StackedPILAE(width=[3]), PILClassifier()):
        model.fit(X, y)
        model.fitted_ = replace(model.fitted_, columns=Columns(5))
        model.save(path)
        with pytest.raises(pilae.ModelFileError, match="makes no sense"):
            pilae.load(path)
    model = PILAEClassifier(head="ridge", depth=0).fit(X, y)
    model.fitted_ = replace(model.fitted_, targets=Classes(model.classes_[:2]))
    model.save(path)
    with pytest.raises(pilae.ModelFileError, match="makes no sense"):
        pilae.load(path)


def test_a_header_that_could_not_be_loaded_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr("pilae.save.HEADER_BYTES", 1000)
    with pytest.raises(ValueError, match="at most 1,000 can be loaded"):
        PILAEClassifier().fit(X, y).save(tmp_path / "m.pilae")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", ["O_TMPFILE", "link"])
def test_systems_without_nameless_files_get_whole_files_too(missing, tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("not here")

    if missing == "link":
        monkeypatch.setattr("os.link", refuse)
    else:
        monkeypatch.delattr("os.O_TMPFILE")
    path = tmp_path / "m.pilae"
    model = PILAEClassifier().fit(X, y)
    np.testing.assert_array_equal(roundtrip(model, path).predict(X), model.predict(X))
    with pytest.raises(ValueError, match="safe"):
        PILAEClassifier(depth=0, head=Own()).fit(X, y).save(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_one_sentence():
    with pytest.raises(OSError, match=r"^Cannot write '/dev/full': No space left on device\.$") as caught:
        PILAEClassifier().fit(X, y).save("/dev/full")
    assert caught.value.errno == errno.ENOSPC


def test_a_parameter_that_came_later_has_its_default(tmp_path):
    """A field that a later version added is missing in an older file of the same format."""
    path = tmp_path / "m.pilae"
    model = PILAEClassifier(width=[3]).fit(X, y)
    model.save(path)

    def older(header, members):
        for item in header["objects"]:
            if item.get("kind") == "PILAEClassifier":
                del item["fields"]["skip"]

    rewritten(path, older)
    again = pilae.load(path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.get_params()["skip"] == "auto"


def test_a_file_of_an_earlier_format_says_who_wrote_it(tmp_path):
    path = tmp_path / "m.pilae"
    path.write_bytes(lzma.decompress((FILES / "format-2.pilae.xz").read_bytes()))
    with pytest.raises(pilae.ModelFileError, match=r"by pilae 0\.1\.0\.dev0, in format 2.* or fit the model again"):
        pilae.load(path)


@pytest.mark.parametrize("versions", [None, [], 3, "x", {"pilae": None}, {"pilae": 3}, {"pilae": "9" * 10**6}])
def test_whoever_wrote_a_file_of_an_earlier_format_one_sentence_says_so(tmp_path, versions):
    path = tmp_path / "m.pilae"
    PILAEClassifier(depth=0, head="ridge", ridge=1.0).fit(X, y).save(path)
    rewritten(path, lambda header, members: header.update(format=2, versions=versions))
    with pytest.raises(pilae.ModelFileError, match=r"by pilae .*, in format 2") as error:
        pilae.load(path)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(("name", "kind"), [("table-of-skrub", "Encoder"), ("table-of-an-encoder", "TableEncoder")])
def test_a_table_with_an_encoder_of_its_own_says_what_to_do(tmp_path, name, kind):
    path = tmp_path / "m.pilae"
    path.write_bytes(lzma.decompress((FILES / f"{name}.pilae.xz").read_bytes()))
    with pytest.raises(pilae.ModelFileError, match=rf"holds a '{kind}', .* or fit the model again with this one"):
        pilae.load(path)


def test_the_header_says_what_a_file_holds(tmp_path):
    path = tmp_path / "m.pilae"
    PILAEClassifier().fit(X, y).save(path)
    header = save.read_header(path)
    assert header["kind"] == "PILAEClassifier"
    assert header["versions"]["pilae"] == pilae.__version__
    assert 0 < header["array_bytes"] < header["bytes"]


def test_objects_that_take_forever_are_refused(tmp_path):
    """Keys whose hash walks through 3 ** 40 paths, and one object that is named again and again."""
    path = tmp_path / "m.pilae"
    model = StackedPILAE(width=[3]).fit(X)

    def keys(header, members):
        first, sides = len(header["objects"]), ("height", "width", "channels")
        inner = [{"kind": "Shape", "fields": {s: {"object": first + k + 1} for s in sides}} for k in range(40)]
        header["objects"] += [*inner, {"kind": "Shape", "fields": dict.fromkeys(sides, 1)}]
        header["objects"].append({"dict": [[{"object": first}, 1]]})
        header["tree"]["model"] = {"object": first + 41}

    def mentions(header, members):
        for item in header["objects"]:
            if "list" in item:
                item["list"] = item["list"] * 1000

    def more(header, members):
        header["tree"]["more"] = 3

    for change in (keys, mentions, more):
        model.save(path)
        rewritten(path, change)
        with pytest.raises(pilae.ModelFileError, match="makes no sense"):
            pilae.load(path)


def test_shapes_are_looked_at_before_anything_is_multiplied(tmp_path):
    path = tmp_path / "m.pilae"
    model = PILAEClassifier(depth=0, ridge=1e-3, input_scaling="standard", head=SHLN(width=8)).fit(X, y)
    model.network_.scaling.mean = np.zeros((300, 1))  # beside a row it would become a matrix
    model.save(path)
    with pytest.raises(pilae.ModelFileError, match="makes no sense") as caught:
        pilae.load(path)
    assert "has shape (300, 1)" in str(caught.value.__cause__)


def test_support_vector_machines_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match="libsvm, whose compiled code trusts"):
        PILAEClassifier(depth=0, head=SVC()).fit(X, y).save(tmp_path / "m.pilae")
    roundtrip(PILAEClassifier(depth=0, head=LinearSVC()).fit(X, y), tmp_path / "m.pilae")


def test_permissions_of_a_file_stay(tmp_path):
    path = tmp_path / ("m" * 240 + ".pilae")
    model = PILAEClassifier(depth=0, head="ridge").fit(X, y)
    model.save(path)
    path.chmod(0o600)
    model.save(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_grid_finer_than_the_image_is_refused(tmp_path):
    images = load_digits().images[:60]
    model = ConvPILAE(filters=4, patch=3, pool=2).fit(images)
    np.testing.assert_array_equal(roundtrip(model, tmp_path / "m.pilae").transform(images), model.transform(images))
    model.branches_[0].grid = (2**31, 2)
    model.save(tmp_path / "m.pilae")
    with pytest.raises(pilae.ModelFileError, match="makes no sense"):
        pilae.load(tmp_path / "m.pilae")


def test_estimators_of_another_scikit_learn_are_said(tmp_path, monkeypatch):
    path = tmp_path / "old.pilae"
    model = PILAEClassifier(depth=0, head=LogisticRegression(max_iter=500)).fit(X, y)
    monkeypatch.setattr("pilae.save.versions", lambda: {"pilae": "0.1.0", "scikit-learn": "0.24.2"})
    model.save(path)
    monkeypatch.undo()
    with pytest.warns(
        UserWarning, match=r"holds LogisticRegression of scikit-learn 0\.24\.2, and this is .*=0\.24\.2"
    ) as said:
        np.testing.assert_array_equal(pilae.load(path).predict(X), model.predict(X))
    assert [one.filename for one in said] == [__file__]


def test_what_skops_writes_is_compressed(tmp_path):
    path = tmp_path / "head.pilae"
    PILAEClassifier(depth=0, head=LogisticRegression(max_iter=500)).fit(X, y).save(path)
    with zipfile.ZipFile(path) as archive:
        kinds = {info.filename.rpartition(".")[2]: info.compress_type for info in archive.infolist()}
    assert (kinds["skops"], kinds["npy"]) == (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED)
