"""Data sets by name: small files written here in the official formats, independently of the readers."""

import gzip
import struct
import subprocess
import sys
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import sklearn.datasets

from pilae import datasets
from pilae.datasets import checksum
from pilae.datasets.formats import Parts, read_idx, read_norb, read_svhn, read_text
from pilae.datasets.sets import SETS

RNG = np.random.default_rng(0)
IMAGES, LABELS = RNG.integers(0, 256, (6, 28, 28), dtype=np.uint8), np.array([0, 1, 2, 2, 1, 0], dtype=np.uint8)


def expect(monkeypatch, name, shape, n_test, classes):
    """Let `load` expect a small set."""
    small = SETS[name]._replace(title="Small", shape=shape, n_test=n_test, classes=classes)
    monkeypatch.setitem(SETS, name, small)


def idx_bytes(array):
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def norb_bytes(array):
    magic = {"uint8": 0x1E3D4C55, "int32": 0x1E3D4C54}[array.dtype.name]
    shape = (*array.shape, 1, 1)[: max(3, array.ndim)]
    return struct.pack(f"<Ii{len(shape)}i", magic, array.ndim, *shape) + array.tobytes()


def write_idx_set(folder, pack=lambda content: content, suffix=""):
    folder.mkdir(parents=True)
    for part, rows in (("train", slice(4)), ("t10k", slice(4, 6))):
        (folder / f"{part}-images-idx3-ubyte{suffix}").write_bytes(pack(idx_bytes(IMAGES[rows])))
        (folder / f"{part}-labels-idx1-ubyte{suffix}").write_bytes(pack(idx_bytes(LABELS[rows])))


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.delenv("PILAE_DATA", raising=False)


@pytest.fixture
def small_mnist(monkeypatch):
    for name in ("mnist", "fashion_mnist"):
        expect(monkeypatch, name, (4, 28, 28), 2, range(3))


@pytest.fixture
def offline(monkeypatch):
    def fail(**_):
        raise URLError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fail)


def test_idx(tmp_path):
    path = tmp_path / "images"
    path.write_bytes(idx_bytes(IMAGES))
    np.testing.assert_array_equal(read_idx(path), IMAGES)
    path.write_bytes(gzip.compress(idx_bytes(IMAGES)))
    np.testing.assert_array_equal(read_idx(path), IMAGES)
    path.write_bytes(struct.pack(">BBBBI3i", 0, 0, 12, 1, 3, 1, -2, 70000))
    np.testing.assert_array_equal(read_idx(path), [1, -2, 70000])
    assert read_idx(path).dtype == np.int32


@pytest.mark.parametrize("read", [read_idx, read_norb])
@pytest.mark.parametrize("content", [b"", b"\0\0", b"PK\3\4 and more bytes", b"\0\0\7\1\0\0\0\0"])
def test_a_file_of_another_kind_is_refused(tmp_path, read, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=r"file is no .* begins with the bytes"):
        read(tmp_path / "file")


@pytest.mark.parametrize(("read", "content"), [(read_idx, idx_bytes(IMAGES)), (read_norb, norb_bytes(IMAGES))])
def test_a_file_of_another_length_is_refused(tmp_path, read, content):
    path = tmp_path / "file"
    for wrong in (content[:-1], content + b"\0", content[:14]):
        path.write_bytes(wrong)
        with pytest.raises(
            ValueError, match=rf"file has {len(wrong)} bytes, but its header asks for \d+: it is cut off"
        ):
            read(path)
    path.write_bytes(gzip.compress(content)[:-20])
    with pytest.raises(ValueError, match="cannot be unpacked"):
        read(path)


def test_norb(tmp_path):
    pairs = RNG.integers(0, 256, (5, 2, 4, 3), dtype=np.uint8)
    categories = np.array([0, 4, 1, 2, 3], dtype=np.int32)
    for array in (pairs, categories):
        (tmp_path / "file.mat").write_bytes(norb_bytes(array))
        read = read_norb(tmp_path / "file.mat")
        np.testing.assert_array_equal(read, array, strict=True)


def test_norb_as_a_set(tmp_path, monkeypatch):
    expect(monkeypatch, "norb", (3, 2, 4, 4), 2, range(3))
    pairs, categories = RNG.integers(0, 256, (5, 2, 4, 4), dtype=np.uint8), np.array([2, 1, 0, 1, 1], dtype=np.int32)
    for part, rows in (("46789x9x18x6x2x96x96-training", slice(3)), ("01235x9x18x6x2x96x96-testing", slice(3, 5))):
        (tmp_path / f"smallnorb-5x{part}-dat.mat").write_bytes(norb_bytes(pairs[rows]))
        (tmp_path / f"smallnorb-5x{part}-cat.mat.gz").write_bytes(gzip.compress(norb_bytes(categories[rows])))
    data = datasets.load("norb", tmp_path)
    np.testing.assert_array_equal(data.X, pairs[:3], strict=True)
    np.testing.assert_array_equal(data.X_test, pairs[3:], strict=True)
    np.testing.assert_array_equal(data.y_test, np.array([1, 1]), strict=True)


def test_svhn(tmp_path, monkeypatch):
    images = RNG.integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
    digits = np.array([1, 0, 9, 9, 0])
    for part, rows in (("train", slice(3)), ("test", slice(3, 5))):
        y = np.where(digits[rows] == 0, 10, digits[rows]).astype(np.uint8)[:, None]
        scipy.io.savemat(tmp_path / f"{part}_32x32.mat", {"X": np.moveaxis(images[rows], 0, -1), "y": y})
    expect(monkeypatch, "svhn", (3, 32, 32, 3), 2, (0, 1, 9))
    data = datasets.load("svhn", tmp_path)
    np.testing.assert_array_equal(data.X, images[:3], strict=True)
    np.testing.assert_array_equal(data.y_test, digits[3:], strict=True)
    assert data.source == "train_32x32.mat, test_32x32.mat"

    scipy.io.savemat(tmp_path / "train_32x32.mat", {"X": np.zeros((2, 2))})
    with pytest.raises(ValueError, match="holds no variable 'y'"):
        read_svhn(tmp_path / "train_32x32.mat")
    (tmp_path / "train_32x32.mat").write_bytes(b"<html>not found</html>" * 20)
    with pytest.raises(ValueError, match="cannot be read as a Matlab file"):
        read_svhn(tmp_path / "train_32x32.mat")


def test_text_is_read_strictly(tmp_path):
    path = tmp_path / "rows.data"
    path.write_text("1, ?, 3., a\n\n4,  5,-6e1, b\n")
    X, y = read_text(path, label=-1, separator=",")
    np.testing.assert_array_equal(X, np.array([[1, np.nan, 3], [4, 5, -60]], dtype=np.float32), strict=True)
    assert y.tolist() == ["a", "b"]
    for text, sentence in (
        ("1 2\n3\n", "line 2: 1 numbers, but 2"),
        ("1 2\n3 x\n", "line 2: could not convert string to float: 'x'"),
        ("a b\n1 2\n", "line 1: could not convert"),
        ("\n", "holds no rows"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=sentence):
            read_text(path)


HEADINGS = "BRICKFACE,SKY\n\nCOL,ROW\n\n;;; numbers\n"
TABLES = {  # name: files, expected X, y, rows of the test part
    "bupa": ({"bupa.data": "85,92,0.5,1\n86,54,6.0,2\n"}, [[85, 92, 0.5], [86, 54, 6]], [1, 2], 0),
    "spambase": ({"spambase.data": "0,0.64,1\n0.21,0.28,0\n"}, [[0, 0.64], [0.21, 0.28]], [1, 0], 0),
    "segment": (
        {"segmentation.data": HEADINGS + "SKY,1.0,-2\n", "segmentation.test": HEADINGS + "BRICKFACE,3,4\nGRASS,5,6\n"},
        [[1, -2], [3, 4], [5, 6]],
        ["sky", "brickface", "grass"],
        0,
    ),
    "advertisement": (
        {"ad.data": " 125, 125,1.0,ad.\n   ?,   ?,   ?,nonad.\n"},
        [[125, 125, 1], [np.nan] * 3],
        ["ad", "nonad"],
        0,
    ),
    "isolet": (
        {"isolet1+2+3+4.data": "-0.4394, 0.5, 1.\n0.1, 0.2, 26.\n", "isolet5.data": "0.3, 0.4, 26.\n"},
        [[-0.4394, 0.5], [0.1, 0.2], [0.3, 0.4]],
        [0, 25, 25],
        1,
    ),
    "har": (
        {
            "UCI HAR Dataset/train/X_train.txt": "  2.8858451e-001 -2.0294171e-002\n -1 1\n",
            "UCI HAR Dataset/train/y_train.txt": "5\n6\n",
            "UCI HAR Dataset/test/X_test.txt": " 0.5 0.25\n",
            "UCI HAR Dataset/test/y_test.txt": "5\n",
        },
        [[0.28858451, -0.020294171], [-1, 1], [0.5, 0.25]],
        [5, 6, 5],
        1,
    ),
    "sylva": (
        {
            "sylva/sylva_train.data": "724 0 1 \n893 0 0 \n",
            "sylva/sylva_train.labels": "-1\n1\n",
            "sylva/sylva_valid.data": "7 8 9\n",
            "sylva/sylva_valid.labels": "-1\n",
        },
        [[724, 0, 1], [893, 0, 0], [7, 8, 9]],
        [-1, 1, -1],
        0,
    ),
    "mfeat": (
        {
            f"mfeat/mfeat-{part}": f" {k} 0.5\n  1 2\n"
            for k, part in enumerate(("fou", "fac", "kar", "pix", "zer", "mor"))
        },
        [[0, 0.5, 1, 0.5, 2, 0.5, 3, 0.5, 4, 0.5, 5, 0.5], [1, 2] * 6],
        [0, 5],
        0,
    ),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("packed", [False, True])
def test_tables_from_text_equal_those_from_npz(tmp_path, monkeypatch, name, packed):
    files, X, y, n_test = TABLES[name]
    X, y, n = np.array(X, dtype=np.float32), np.array(y), len(X) - n_test
    expect(monkeypatch, name, (n, X.shape[1]), n_test, np.unique(y).tolist())
    for file, text in files.items():
        path = tmp_path / (f"{file}.gz" if packed else file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    text = datasets.load(name, tmp_path, openml=False)
    np.testing.assert_array_equal(text.X, X[:n], strict=True)
    np.testing.assert_array_equal(text.y, y[:n], strict=True)
    assert (text.X_test is None) == (n_test == 0)

    arrays = {"X_train": X[:n], "y_train": y[:n], "X_test": X[n:], "y_test": y[n:]} if n_test else {"X": X, "y": y}
    [stem] = SETS[name].npz or (name,)
    np.savez(tmp_path / f"{stem}.npz", **arrays)
    binary = datasets.load(name, tmp_path, openml=False)
    assert binary.source == f"{stem}.npz"
    assert binary.checksum == text.checksum


def test_the_ginas_are_told_apart_by_their_folders(tmp_path, monkeypatch):
    for name, folder, number in (("prior", "gina_prior", 3), ("gina_agnostic", "gina_agnostic", 4)):
        expect(monkeypatch, name, (3, 1), 0, (-1, 1))
        (tmp_path / folder).mkdir()
        for part, labels in (("train", "-1\n1\n"), ("valid", "1\n")):
            (tmp_path / folder / f"gina_{part}.data").write_text(f"{number}\n" * labels.count("\n"))
            (tmp_path / folder / f"gina_{part}.labels").write_text(labels)
    assert datasets.load("prior", tmp_path).X.tolist() == [[3]] * 3
    assert datasets.load("gina_agnostic", tmp_path).X.tolist() == [[4]] * 3


def test_the_same_arrays_from_idx_and_npz(tmp_path, small_mnist, monkeypatch):
    write_idx_set(tmp_path / "idx/mnist")
    write_idx_set(tmp_path / "packed/MNIST/raw", gzip.compress, ".gz")
    (tmp_path / "npz").mkdir()
    arrays = {"x_train": IMAGES[:4], "y_train": LABELS[:4], "x_test": IMAGES[4:], "y_test": LABELS[4:]}
    np.savez(tmp_path / "npz/mnist.npz", **arrays)  # as Keras writes it
    monkeypatch.setenv("PILAE_DATA", str(tmp_path / "idx"))
    data = datasets.load("mnist")
    np.testing.assert_array_equal(data.X, IMAGES[:4], strict=True)
    np.testing.assert_array_equal(data.y_test, LABELS[4:].astype(np.int64), strict=True)
    assert data.source.startswith("mnist/train-images-idx3-ubyte, mnist/train-labels-idx1-ubyte, ")
    for folder in ("packed", "npz"):
        assert datasets.load("mnist", tmp_path / folder).checksum == data.checksum


def test_the_checksum_sees_values_shapes_and_types():
    parts = Parts(IMAGES, LABELS)
    others = [
        Parts(IMAGES[::-1], LABELS),
        Parts(IMAGES.reshape(6, -1), LABELS),
        Parts(IMAGES, LABELS.astype(np.int64)),
        Parts(IMAGES, LABELS.astype(str)),
        Parts(IMAGES, LABELS, IMAGES, LABELS),
    ]
    sums = [checksum(p) for p in (parts, *others)]
    assert len(set(sums)) == len(sums)
    big_endian = Parts(np.asfortranarray(IMAGES), LABELS.astype(">i8"))
    assert checksum(big_endian) == sums[3]


def test_fashion_mnist_is_never_read_as_mnist(tmp_path, small_mnist):
    write_idx_set(tmp_path / "fashion_mnist")
    assert datasets.load("fashion_mnist", tmp_path).title == "Small"
    with pytest.raises(FileNotFoundError, match="'mnist' was not found"):
        datasets.load("mnist", tmp_path, openml=False)
    with pytest.raises(FileNotFoundError):  # nor are files whose folder does not say which they are
        datasets.load("fashion_mnist", tmp_path / "fashion_mnist", openml=False)


def test_wrong_shapes_and_classes_are_refused(tmp_path, small_mnist, monkeypatch):
    write_idx_set(tmp_path / "mnist")
    expect(monkeypatch, "mnist", (5, 28, 28), 2, range(3))
    with pytest.raises(
        ValueError, match=r"train-images.*: X has shape \(4, 28, 28\), but Small has \(5, 28, 28\); get"
    ):
        datasets.load("mnist", tmp_path)
    expect(monkeypatch, "mnist", (4, 28, 28), 3, range(3))
    with pytest.raises(ValueError, match=r"X_test has shape \(2, 28, 28\)"):
        datasets.load("mnist", tmp_path)
    expect(monkeypatch, "mnist", (4, 28, 28), 2, range(10))
    with pytest.raises(
        ValueError, match=r"found 3 classes \(0, 1, 2\), but Small has 10 classes \(0, 1, 2, ...\); get"
    ):
        datasets.load("mnist", tmp_path)
    np.savez(tmp_path / "mnist.npz", x_train=IMAGES[:4], y_train=LABELS[:3], x_test=IMAGES[4:], y_test=LABELS[4:])
    with pytest.raises(ValueError, match=r"mnist.npz: y has shape \(3,\)"):
        datasets.load("mnist", tmp_path)


def test_a_part_does_not_pass_for_the_whole(tmp_path):
    np.savez(tmp_path / "isolet.npz", X=np.zeros((1560, 617), dtype=np.float32), y=np.arange(1560) % 26)
    with pytest.raises(ValueError, match=r"X has shape \(1560, 617\), but Isolet has \(7797, 617\)"):
        datasets.load("isolet", tmp_path)


def test_an_npz_that_is_none(tmp_path):
    path = tmp_path / "segment.npz"
    path.write_bytes(b"PK\3\4 cut off")
    with pytest.raises(ValueError, match=r"segment.npz cannot be read"):
        datasets.load("segment", tmp_path)
    np.savez(path, X=np.array([{}], dtype=object), y=np.zeros(1))
    with pytest.raises(ValueError, match=r"segment.npz cannot be read as arrays without pickle"):
        datasets.load("segment", tmp_path)
    np.savez(path, rows=np.zeros(1))
    with pytest.raises(ValueError, match=r"has neither X, y nor X_train.*; it has rows"):
        datasets.load("segment", tmp_path)


@pytest.mark.parametrize("name", datasets.NAMES)
def test_a_missing_set_says_where_to_get_it(tmp_path, offline, name):
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load(name, tmp_path / "nowhere")
    sentence = str(caught.value)
    assert sentence.startswith(f"The data set '{name}' was not found: looked in {tmp_path}/nowhere")
    assert "(no such folder)" in sentence
    assert ".npz" in sentence
    assert "://" in sentence or "load('" in sentence
    assert ("no network" in sentence) == (SETS[name].openml is not None)
    assert SETS[name].files is None or all(file in sentence for file in SETS[name].files.names)
    assert "\n" not in sentence
    with pytest.raises(FileNotFoundError, match="PILAE_DATA is not set"):
        datasets.load(name, openml=False)


def test_unknown_name():
    with pytest.raises(ValueError, match=r"There is no data set 'MNIST'; there are bupa, segment, .*, coil20_32x32\."):
        datasets.load("MNIST")


def answer(monkeypatch, data, target, names=(), categories=None):
    """Let OpenML answer with this; the questions asked."""
    asked = []

    def fetch_openml(**question):
        asked.append(question)
        return SimpleNamespace(data=data, target=target, feature_names=list(names), categories=categories)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    return asked


def test_openml_images_get_their_shape_and_split(tmp_path, small_mnist, monkeypatch):
    asked = answer(monkeypatch, IMAGES.reshape(6, -1).astype(float), LABELS.astype(str).astype(object), categories={})
    write_idx_set(tmp_path / "mnist")
    data = datasets.load("mnist", tmp_path / "empty")
    assert data.checksum == datasets.load("mnist", tmp_path).checksum
    assert data.source == "OpenML 554"
    assert [question["data_id"] for question in asked] == [554]


def test_openml_labels_are_those_of_the_files(monkeypatch):
    expect(monkeypatch, "isolet", (2, 2), 1, (0, 25))
    answer(monkeypatch, np.ones((3, 2)), np.array(["1", "26", "26"], dtype=object))
    data = datasets.load("isolet")
    np.testing.assert_array_equal(data.y, np.array([0, 25, 25]), strict=True)
    assert data.X_test is None  # the order of its rows is not known
    assert data.X.dtype == np.float32

    expect(monkeypatch, "bupa", (2, 2), 0, (1, 2))
    asked = answer(monkeypatch, scipy.sparse.csr_array(np.eye(2)), np.array([1.0, 2.0]))
    assert datasets.load("bupa").X.tolist() == [[1, 0], [0, 1]]
    assert asked[0]["target_column"] == "selector"


def test_openml_nominal_columns_get_their_values(monkeypatch):
    expect(monkeypatch, "advertisement", (3, 2), 0, ("ad", "nonad"))
    codes = np.array([[0.0, 7.5], [1.0, np.nan], [np.nan, 1.0]])
    answer(monkeypatch, codes, np.array(["ad", "nonad", "ad"], dtype=object), ["local", "width"], {"local": ["1", "0"]})
    data = datasets.load("advertisement")
    expected = np.array([[1, 7.5], [0, np.nan], [np.nan, 1]], dtype=np.float32)
    np.testing.assert_array_equal(data.X, expected, strict=True)
    assert data.y.tolist() == ["ad", "nonad", "ad"]


def test_openml_with_other_columns_is_refused(monkeypatch, small_mnist):
    answer(monkeypatch, np.ones((6, 100)), LABELS)
    with pytest.raises(ValueError, match=r"OpenML 554: X has shape \(6, 100\), but Small has \(6, 784\)"):
        datasets.load("mnist")


def test_other_failures_of_openml_are_not_hidden(monkeypatch):
    def fail(**_):
        raise KeyError("selector")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fail)
    with pytest.raises(KeyError):
        datasets.load("bupa")


def test_import_is_cheap():
    code = (
        "import sys, pilae; pilae.load; before = set(sys.modules); import pilae.datasets; "
        "print([m for m in set(sys.modules) - before if m.startswith(('sklearn', 'scipy'))])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_damaged_files_name_the_folder(tmp_path):
    (tmp_path / "spambase.data").write_text("<html>not found</html>\n")
    with pytest.raises(ValueError, match=r"spambase"):
        datasets.load("spambase", tmp_path, openml=False)
    (tmp_path / "svhn").mkdir()
    for part in ("train", "test"):
        (tmp_path / "svhn" / f"{part}_32x32.mat").write_bytes(b"MATLAB 5.0 MAT-file" + bytes(120))
    with pytest.raises(ValueError, match=r"svhn"):
        datasets.load("svhn", tmp_path, openml=False)
