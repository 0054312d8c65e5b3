"""The sets: what each is called, what it must look like, where it may be and how its files are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .formats import Parts, integers, read_idx, read_norb, read_svhn, read_text


class Known(NamedTuple):
    """What is known of a set."""

    title: str
    shape: tuple[int, ...]
    n_test: int
    """Rows of the official test part, if there is one."""
    classes: Iterable
    address: str
    """Where to get it, as part of a sentence."""
    npz: tuple[str, ...] = ()
    """Stems of its `.npz` file, where that is not the name."""
    files: tuple[str, ...] = ()
    """The official files."""
    read: Callable[[list[Path]], Parts] | None = None
    """What makes a set of them."""
    places: tuple[str, ...] = ()
    """Folders the official files may be in, if not in the usual ones."""
    labels: Callable[[Any], np.ndarray] = integers
    """From labels as official files and OpenML have them."""
    openml: int | None = None
    """Its number there."""
    openml_in_order: bool = False
    """Whether its rows there are known to be the training part, then the test part."""
    openml_target: str = "default-target"
    """The column of classes there, where that is not OpenML's own target."""


def _from_zero(labels: Any) -> np.ndarray:
    return integers(labels) - 1


def _words(labels: Any) -> np.ndarray:
    return np.array([str(label).strip(" .'\"").lower() for label in labels])


def _idx_set(paths: list[Path]) -> Parts:
    return Parts(*(read_idx(path) for path in paths))


def _norb_set(paths: list[Path]) -> Parts:
    return Parts(*(read_norb(path) for path in paths))


def _svhn_set(paths: list[Path]) -> Parts:
    return Parts(*read_svhn(paths[0]), *read_svhn(paths[1]))


def _tables(paths: list[Path], *, label: int, headings: bool = False, split: bool = False) -> Parts:
    """Files of rows with their labels, one after another, or the second as the test part."""
    tables = [read_text(path, label=label, separator=",", headings=headings) for path in paths]
    if split:
        return Parts(*tables[0], *tables[1])
    return Parts(np.concatenate([X for X, _ in tables]), np.concatenate([y for _, y in tables]))


def _pairs(paths: list[Path], *, split: bool = False) -> Parts:
    """Files of rows, each before the file of its labels, one after another, or the second pair as the test part."""
    tables = [read_text(path)[0] for path in paths]
    X, y = tables[::2], [labels[:, 0] for labels in tables[1::2]]
    return Parts(X[0], y[0], X[1], y[1]) if split else Parts(np.concatenate(X), np.concatenate(y))


def _mfeat(paths: list[Path]) -> Parts:
    """Six files of columns; the digits are in order, equally many of each."""
    X = [read_text(path)[0] for path in paths]
    if len({len(part) for part in X}) > 1:
        raise ValueError(f"{paths[0].parent}: the mfeat files have {', '.join(str(len(part)) for part in X)} rows.")
    return Parts(np.concatenate(X, axis=1), np.arange(len(X[0])) * 10 // len(X[0]))


DIGITS, LETTERS, SIGNS, ACTIVITIES = range(10), range(26), (-1, 1), range(1, 7)

SURFACES = ("brickface", "cement", "foliage", "grass", "path", "sky", "window")

IDX = tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))

NORB = tuple(
    f"smallnorb-5x{part}-{kind}.mat"
    for part in ("46789x9x18x6x2x96x96-training", "01235x9x18x6x2x96x96-testing")
    for kind in ("dat", "cat")
)

GINA, SYLVA = (
    tuple(f"{stem}_{part}.{kind}" for part in ("train", "valid") for kind in ("data", "labels"))
    for stem in ("gina", "sylva")
)

MFEAT = tuple(f"mfeat-{part}" for part in ("fou", "fac", "kar", "pix", "zer", "mor"))

HAR = ("train/X_train.txt", "train/y_train.txt", "test/X_test.txt", "test/y_test.txt")

HAR_PLACES = ("UCI HAR Dataset", "har/UCI HAR Dataset", "har", "")

SYLVA_PLACES = ("sylva", "sylva_agnostic", "")

UCI = "get the files from https://archive.ics.uci.edu/dataset"

CHALLENGE = "get the files of the agnostic learning challenge from http://www.agnostic.inf.ethz.ch/datasets.php"

COIL = "https://www.cs.columbia.edu/CAVE/software/softlib/coil-20.php"


SETS = {
    "bupa": Known(
        "Bupa",
        (345, 6),
        0,
        (1, 2),
        f"{UCI}/60/liver+disorders",
        npz=("liver_bupa",),
        files=("bupa.data",),
        read=partial(_tables, label=-1),
        openml=8,
        openml_target="selector",  # OpenML's own is the number of drinks
    ),
    "segment": Known(
        "Segment",
        (2310, 19),
        0,
        SURFACES,
        f"{UCI}/50/image+segmentation",
        files=("segmentation.data", "segmentation.test"),
        read=partial(_tables, label=0, headings=True),
        labels=_words,
        openml=36,
    ),
    "mfeat": Known("Mfeat", (2000, 649), 0, DIGITS, f"{UCI}/72/multiple+features", files=MFEAT, read=_mfeat),
    # the two gina sets share their file names, and so do MNIST and Fashion-MNIST: in folders of their own only
    "prior": Known(
        "Prior",
        (3468, 784),
        0,
        SIGNS,
        CHALLENGE,
        npz=("gina_prior",),
        files=GINA,
        read=_pairs,
        places=("prior", "gina_prior"),
        openml=1042,
    ),
    "har": Known(
        "Har",
        (7352, 561),
        2947,
        ACTIVITIES,
        f"{UCI}/240/human+activity+recognition+using+smartphones",
        files=HAR,
        read=partial(_pairs, split=True),
        places=HAR_PLACES,
        openml=1478,
    ),
    "advertisement": Known(
        "Advertisement",
        (3279, 1558),
        0,
        ("ad", "nonad"),
        f"{UCI}/51/internet+advertisements",
        npz=("internet_ads",),
        files=("ad.data",),
        read=partial(_tables, label=-1),
        labels=_words,
        openml=40978,
    ),
    "gina_agnostic": Known(
        "Gina_agnostic",
        (3468, 970),
        0,
        SIGNS,
        CHALLENGE,
        files=GINA,
        read=_pairs,
        places=("gina_agnostic",),
        openml=1038,
    ),
    "spambase": Known(
        "Spambase",
        (4601, 57),
        0,
        (0, 1),
        f"{UCI}/94/spambase",
        files=("spambase.data",),
        read=partial(_tables, label=-1),
        openml=44,
    ),
    "isolet": Known(
        "Isolet",
        (6238, 617),
        1559,
        LETTERS,
        f"{UCI}/54/isolet (unpack .Z by uncompress)",
        files=("isolet1+2+3+4.data", "isolet5.data"),
        read=partial(_tables, label=-1, split=True),
        labels=_from_zero,
        openml=300,
    ),
    "sylva": Known(
        "Sylva",
        (14395, 216),
        0,
        SIGNS,
        CHALLENGE,
        npz=("sylva_agnostic",),
        files=SYLVA,
        read=_pairs,
        places=SYLVA_PLACES,
        openml=1036,
    ),
    "mnist": Known(
        "MNIST",
        (60000, 28, 28),
        10000,
        DIGITS,
        "get the files from https://ossci-datasets.s3.amazonaws.com/mnist/",
        files=IDX,
        read=_idx_set,
        places=("mnist", "MNIST/raw"),
        openml=554,
        openml_in_order=True,
    ),
    "fashion_mnist": Known(
        "Fashion-MNIST",
        (60000, 28, 28),
        10000,
        DIGITS,
        "get the files from https://github.com/zalandoresearch/fashion-mnist",
        files=IDX,
        read=_idx_set,
        places=("fashion_mnist", "FashionMNIST/raw"),
        openml=40996,
        openml_in_order=True,
    ),
    "norb": Known(
        "NORB",
        (24300, 2, 96, 96),
        24300,
        range(5),
        "get the files from https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/",
        npz=("norb", "smallnorb"),
        files=NORB,
        read=_norb_set,
        places=("norb", "smallnorb", ""),
    ),
    # OpenML has SVHN (41081) too, but the order of the pixels in its flat rows is not written down
    "svhn": Known(
        "SVHN",
        (73257, 32, 32, 3),
        26032,
        DIGITS,
        "get the files from http://ufldl.stanford.edu/housenumbers/",
        files=("train_32x32.mat", "test_32x32.mat"),
        read=_svhn_set,
    ),
    # parts of them, and stand-ins
    "sylva_agnostic_train": Known(
        "the training part of Sylva",
        (13086, 216),
        0,
        SIGNS,
        CHALLENGE,
        files=SYLVA[:2],
        read=_pairs,
        places=SYLVA_PLACES,
    ),
    "isolet_subset": Known(
        "the part of Isolet",
        (1560, 617),
        1559,
        LETTERS,
        "the part is in no public place, but the whole is load('isolet')",
    ),
    "har_subset735": Known(
        "the part of Har",
        (735, 561),
        0,
        ACTIVITIES,
        "the part is in no public place, but the whole is load('har')",
    ),
    "svhn_gray": Known(
        "the gray crop of SVHN",
        (73257, 32, 32),
        26032,
        DIGITS,
        "the crop is in no public place, but the official set is load('svhn')",
    ),
    "coil20_32x32": Known(
        "COIL-20",
        (1440, 32, 32),
        0,
        range(20),
        f"get the images from {COIL} and bring them to 32 x 32",
    ),
}
"""By name: the sets of the paper, then parts of them and stand-ins."""
