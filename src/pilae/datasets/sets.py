"""The sets: what each is called, what it must look like, where it may be and how its files are read."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .formats import Parts, integers, read_idx, read_norb, read_svhn, read_text


class Files(NamedTuple):
    """The official files of a set."""

    names: tuple[str, ...]
    read: Callable[[list[Path]], Parts]
    """What makes a set of them."""
    folders: tuple[str, ...] = ()
    """Folders they may be in, all in the same, if not in the usual ones."""

    def places(self, name: str) -> tuple[str, ...]:
        """Folders in which they are looked for, one of them for all."""
        return self.folders or (name, "")


class OpenML(NamedTuple):
    """A set on OpenML."""

    number: int
    in_order: bool = False
    """Whether its rows are known to be the training part, then the test part."""
    target: str = "default-target"
    """The column of classes, where that is not OpenML's own target."""


class Known(NamedTuple):
    """What a set must look like, and where it may be."""

    title: str
    shape: tuple[int, ...]
    n_test: int
    """Rows of the official test part, if there is one."""
    classes: Iterable
    address: str
    """Where to get it, as part of a sentence."""
    labels: Callable[[ArrayLike], np.ndarray] = integers
    """From labels as official files and OpenML have them."""
    files: Files | None = None
    openml: OpenML | None = None
    npz: tuple[str, ...] = ()
    """Stems of its `.npz` file, where that is not its name."""


def _from_zero(labels: ArrayLike) -> np.ndarray:
    return integers(labels) - 1


def _words(labels: ArrayLike) -> np.ndarray:
    return np.array([str(label).strip(" .'\"").lower() for label in np.asarray(labels)])


def _arrays(paths: list[Path], *, read: Callable[[Path], np.ndarray]) -> Parts:
    """A file for each array."""
    return Parts(*map(read, paths))


def _matlab(paths: list[Path]) -> Parts:
    return Parts(*read_svhn(paths[0]), *read_svhn(paths[1]))


def _parts(tables: list[tuple[np.ndarray, np.ndarray]], split: bool) -> Parts:
    """Rows with their labels, one table after another, or the second as the test part."""
    return Parts(*tables[0], *tables[1]) if split else Parts(*map(np.concatenate, zip(*tables, strict=True)))


def _tables(paths: list[Path], *, label: int = -1, headings: bool = False, split: bool = False) -> Parts:
    """Files of rows with their labels in one of the columns."""
    return _parts([read_text(path, label=label, separator=",", headings=headings) for path in paths], split)


def _pairs(paths: list[Path], *, split: bool = False) -> Parts:
    """Files of rows, each before the file of its labels."""
    tables = [read_text(path)[0] for path in paths]
    return _parts([(X, y[:, 0]) for X, y in zip(tables[::2], tables[1::2], strict=True)], split)


def _mfeat(paths: list[Path]) -> Parts:
    """Six files of columns; the digits are in order, equally many of each."""
    X = [read_text(path)[0] for path in paths]
    if len({len(part) for part in X}) > 1:
        raise ValueError(f"{paths[0].parent}: the mfeat files have {', '.join(str(len(part)) for part in X)} rows.")
    return Parts(np.concatenate(X, axis=1), np.arange(len(X[0])) * 10 // len(X[0]))


DIGITS, LETTERS, SIGNS, ACTIVITIES = range(10), range(26), (-1, 1), range(1, 7)

SURFACES = ("brickface", "cement", "foliage", "grass", "path", "sky", "window")

UCI = "get the files from https://archive.ics.uci.edu/dataset"

SMARTPHONES = f"{UCI}/240/human+activity+recognition+using+smartphones"

CHALLENGE = "get the files of the agnostic learning challenge from http://www.agnostic.inf.ethz.ch/datasets.php"

MNIST = "get the files from https://ossci-datasets.s3.amazonaws.com/mnist/"

FASHION = "get the files from https://github.com/zalandoresearch/fashion-mnist"

NORB = "get the files from https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/"

SVHN = "get the files from http://ufldl.stanford.edu/housenumbers/"

COIL = "get the images from https://www.cs.columbia.edu/CAVE/software/softlib/coil-20.php and bring them to 32 x 32"

NOWHERE = "the {} is in no public place, but the {} is load({!r})"

GINA, SYLVA = (
    tuple(f"{stem}_{part}.{kind}" for part in ("train", "valid") for kind in ("data", "labels"))
    for stem in ("gina", "sylva")
)

SYLVA_FOLDERS = ("sylva", "sylva_agnostic", "")

HAR = ("train/X_train.txt", "train/y_train.txt", "test/X_test.txt", "test/y_test.txt")

HAR_FOLDERS = ("UCI HAR Dataset", "har/UCI HAR Dataset", "har", "")

IDX = tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))

SMALL_NORB = tuple(
    f"smallnorb-5x{part}-{kind}.mat"
    for part in ("46789x9x18x6x2x96x96-training", "01235x9x18x6x2x96x96-testing")
    for kind in ("dat", "cat")
)

# the two gina sets share their file names, and so do MNIST and Fashion-MNIST: in folders of their own only. OpenML has
# SVHN (41081) too, but the order of the pixels in its flat rows is not written down
SETS = {
    "bupa": Known(
        "Bupa",
        (345, 6),
        0,
        (1, 2),
        f"{UCI}/60/liver+disorders",
        files=Files(("bupa.data",), _tables),
        openml=OpenML(8, target="selector"),  # OpenML's own is the number of drinks
        npz=("liver_bupa",),
    ),
    "segment": Known(
        "Segment",
        (2310, 19),
        0,
        SURFACES,
        f"{UCI}/50/image+segmentation",
        _words,
        Files(("segmentation.data", "segmentation.test"), partial(_tables, label=0, headings=True)),
        OpenML(36),
    ),
    "mfeat": Known(
        "Mfeat",
        (2000, 649),
        0,
        DIGITS,
        f"{UCI}/72/multiple+features",
        files=Files(tuple(f"mfeat-{part}" for part in ("fou", "fac", "kar", "pix", "zer", "mor")), _mfeat),
    ),
    "prior": Known(
        "Prior",
        (3468, 784),
        0,
        SIGNS,
        CHALLENGE,
        files=Files(GINA, _pairs, ("prior", "gina_prior")),
        openml=OpenML(1042),
        npz=("gina_prior",),
    ),
    "har": Known(
        "Har",
        (7352, 561),
        2947,
        ACTIVITIES,
        SMARTPHONES,
        files=Files(HAR, partial(_pairs, split=True), HAR_FOLDERS),
        openml=OpenML(1478),
    ),
    "advertisement": Known(
        "Advertisement",
        (3279, 1558),
        0,
        ("ad", "nonad"),
        f"{UCI}/51/internet+advertisements",
        _words,
        Files(("ad.data",), _tables),
        OpenML(40978),
        ("internet_ads",),
    ),
    "gina_agnostic": Known(
        "Gina_agnostic",
        (3468, 970),
        0,
        SIGNS,
        CHALLENGE,
        files=Files(GINA, _pairs, ("gina_agnostic",)),
        openml=OpenML(1038),
    ),
    "spambase": Known(
        "Spambase",
        (4601, 57),
        0,
        (0, 1),
        f"{UCI}/94/spambase",
        files=Files(("spambase.data",), _tables),
        openml=OpenML(44),
    ),
    "isolet": Known(
        "Isolet",
        (6238, 617),
        1559,
        LETTERS,
        f"{UCI}/54/isolet (unpack .Z by uncompress)",
        _from_zero,
        Files(("isolet1+2+3+4.data", "isolet5.data"), partial(_tables, split=True)),
        OpenML(300),
    ),
    "sylva": Known(
        "Sylva",
        (14395, 216),
        0,
        SIGNS,
        CHALLENGE,
        files=Files(SYLVA, _pairs, SYLVA_FOLDERS),
        openml=OpenML(1036),
        npz=("sylva_agnostic",),
    ),
    "mnist": Known(
        "MNIST",
        (60000, 28, 28),
        10000,
        DIGITS,
        MNIST,
        files=Files(IDX, partial(_arrays, read=read_idx), ("mnist", "MNIST/raw")),
        openml=OpenML(554, in_order=True),
    ),
    "fashion_mnist": Known(
        "Fashion-MNIST",
        (60000, 28, 28),
        10000,
        DIGITS,
        FASHION,
        files=Files(IDX, partial(_arrays, read=read_idx), ("fashion_mnist", "FashionMNIST/raw")),
        openml=OpenML(40996, in_order=True),
    ),
    "norb": Known(
        "NORB",
        (24300, 2, 96, 96),
        24300,
        range(5),
        NORB,
        files=Files(SMALL_NORB, partial(_arrays, read=read_norb), ("norb", "smallnorb", "")),
        npz=("norb", "smallnorb"),
    ),
    "svhn": Known(
        "SVHN", (73257, 32, 32, 3), 26032, DIGITS, SVHN, files=Files(("train_32x32.mat", "test_32x32.mat"), _matlab)
    ),
    # parts of them, and stand-ins
    "sylva_agnostic_train": Known(
        "the training part of Sylva",
        (13086, 216),
        0,
        SIGNS,
        CHALLENGE,
        files=Files(SYLVA[:2], _pairs, SYLVA_FOLDERS),
    ),
    "isolet_subset": Known("the part of Isolet", (1560, 617), 1559, LETTERS, NOWHERE.format("part", "whole", "isolet")),
    "har_subset735": Known("the part of Har", (735, 561), 0, ACTIVITIES, NOWHERE.format("part", "whole", "har")),
    "svhn_gray": Known(
        "the gray crop of SVHN", (73257, 32, 32), 26032, DIGITS, NOWHERE.format("crop", "official set", "svhn")
    ),
    "coil20_32x32": Known("COIL-20", (1440, 32, 32), 0, range(20), COIL),
}
"""By name: the sets of the paper, then parts of them and stand-ins."""
