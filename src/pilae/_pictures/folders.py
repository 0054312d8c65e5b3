"""Which files are images, and of which class: the name of the folder that they are in."""

import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from .._base.sentences import listed, shortened

ENDINGS = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".gif", ".bmp", ".tif", ".tiff", ".webp")


class Found(NamedTuple):
    """Files in order of class and name, the class of each, and what people should know about the folder."""

    files: list[Path]
    labels: list[str]
    remarks: list[str]


def images_by_class(folder: str | os.PathLike, fewest: int = 2) -> Found:
    """The images of a folder that has one folder for each class; an error where there are fewer classes."""
    inside, where = _inside(Path(folder)), repr(str(folder))
    classes = {path.name: _inside(path) for path in inside.folders}
    if not classes:
        images = f" {len(inside.images):,} images lie directly in it:" if inside.images else ""
        raise ValueError(f"{where} has no folder for a class in it:{images} put those of each class into one folder.")
    empty = [name for name, its in classes.items() if not its.images]
    deeper = [name for name in empty if classes[name].folders]
    if len(empty) == len(classes) and deeper:
        raise ValueError(
            f"The folders in {where} hold folders and no images: name the one whose folders are the classes, such as "
            f"{str(Path(folder) / deeper[0])!r}."
        )
    filled = [name for name in classes if classes[name].images]
    if len(filled) < fewest:
        has = f"images of one class only, {shortened(filled[0])}" if filled else "no images in its folders"
        raise ValueError(
            f"{where} has {has}: " + ("at least two classes are needed." if fewest > 1 else "there is nothing to read.")
        )
    remarks = []
    if inside.images:
        remarks.append(f"Images directly in {where} have no class and are left out: {_names(inside.images)}.")
    if empty:
        remarks.append(f"There is no image in {listed(empty)}: no class is learnt from an empty folder.")
    others = [path for its in classes.values() for path in its.others]
    if others:
        remarks.append(f"Files that do not end as images do are left out: {_names(others)}.")
    below = [path for name in filled for path in classes[name].folders]
    if below:
        remarks.append(f"Folders in the folder of a class are left out: {_names(below)}.")
    pairs = [(path, name) for name in filled for path in classes[name].images]
    return Found([path for path, _ in pairs], [name for _, name in pairs], remarks)


def held_out_last(found: Found, share: float) -> tuple[Found, int]:
    """The files in another order, and how many at its end are held out: about the share of each class, and never all of
    it. Which ones is a matter of their names alone, so that new images do not change it for the others."""
    names = [f"{label}/{path.name}" for path, label in zip(found.files, found.labels, strict=True)]
    keys = [sha256(name.encode(errors="surrogateescape")).digest() for name in names]
    of_class: dict[str, list[int]] = {}
    for k in sorted(range(len(keys)), key=keys.__getitem__):
        of_class.setdefault(found.labels[k], []).append(k)
    last = {k for rows in of_class.values() for k in rows[: min(round(share * len(rows)), len(rows) - 1)]}
    order = [k for k in range(len(found.files)) if k not in last] + sorted(last)
    return Found([found.files[k] for k in order], [found.labels[k] for k in order], found.remarks), len(last)


def images_in(paths: Sequence[str]) -> list[Path]:
    """Files as they are named, and of folders all images in them and in their folders."""
    return [file for path in paths for file in _images_below(Path(path))]


def _images_below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        if not path.is_file():
            raise FileNotFoundError(f"There is no file or folder {str(path)!r}.")
        yield path
        return
    count = 0
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for file in (Path(folder) / name for name in sorted(names) if _is_image(name)):
            if file.is_file():
                count += 1
                yield file
    if not count:
        raise ValueError(f"There is no image in {str(path)!r}: files that end in {', '.join(ENDINGS)} are.")


class _Inside(NamedTuple):
    images: list[Path]
    folders: list[Path]
    others: list[Path]


def _inside(folder: Path) -> _Inside:
    """What is in a folder, by name, hidden files aside. Pipes and devices are files of no kind that is read."""
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {str(folder)!r}.")
    found = _Inside([], [], [])
    for path in sorted(path for path in folder.iterdir() if not path.name.startswith(".")):
        if path.is_dir():
            found.folders.append(path)
        else:
            (found.images if _is_image(path.name) and path.is_file() else found.others).append(path)
    return found


def _is_image(name: str) -> bool:
    return name.lower().endswith(ENDINGS) and not name.startswith(".")


def _names(paths: list[Path]) -> str:
    """The first names, and how many more."""
    return listed([f"{path.parent.name}/{path.name}" for path in paths])
