"""Many files: the size they have in common, and one array of them all. Pixels stay bytes."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from .._arrays.threads import cpus
from .._base.progress import Progress
from .._base.sentences import shortened
from .decoder import Decoder, Header, Layout, Unreadable
from .folders import Found

THREADS, AT_ONCE = 4, 64
"""Files that are decoded at the same time, and that a thread may be ahead of the last."""

AGREE = 0.9
"""The share of images of one size from which on the others are taken for exceptions."""

KEPT_SIDE, COMMON_SIDE = 128, 64
"""Images of one size are kept up to so many pixels a side; others are brought to at most so many."""

MOST_BYTES = 4 * 2**30
"""Of all images together."""

GRAY_LEVELS = 2
"""Channels of a gray image that a lossy format keeps differ by at most so many levels."""

FULL_DEPTH = 4096
"""Some number of images of 16 bits is at least as large, unless a camera of 10 or 12 wrote them as they came."""

NAMED = 5
"""Files that cannot be read, in one sentence."""

Read = TypeVar("Read")


class Ways(NamedTuple):
    """How to ask for something else, as it is written where the images are asked for."""

    skip: str
    size: str


IN_PYTHON, AT_A_SHELL = Ways("skip={}", "size=({}, {})"), Ways("--skip-bad-rows {}", "--size {}x{}")


class Pictures(NamedTuple):
    """Images of folders.

    Attributes
    ----------
    images : array of shape (n, height, width) or (n, height, width, 3)
        Bytes; gray if no image has a colour.
    labels : array of shape (n,)
        The name of the folder that each was in.
    files : list of str
    """

    images: np.ndarray
    labels: np.ndarray
    files: list[str]


class ImageReader:
    """Reads images, and keeps account of those that cannot be read: more than `skip` are an error."""

    def __init__(self, skip: int, progress: Progress, ways: Ways = IN_PYTHON) -> None:
        self.skip, self.progress, self.ways = skip, progress, ways
        self.bad: dict[Path, str] = {}
        self.remarks: list[str] = []
        self._decoder = Decoder()

    def by_class(self, found: Found, size: tuple[int, int] | None = None, channels: int | None = None) -> Pictures:
        """All images of a folder in one size, and gray if all are, or as `channels` says."""
        total = len(found.files)
        headers = self._headers(found.files)
        self.check(total, ", and of the others only the beginnings have been read")
        there = [header for header in headers if header is not None]
        width, height = self._common_size(there) if size is None else size
        gray = all(header.gray for header in there) if channels is None else channels == 1
        layout = Layout(width, height, 1 if gray else 3)
        some = [k for k, header in enumerate(headers) if header is not None]
        images, kept = self.read([found.files[k] for k in some], layout)
        self.check(total)
        self.remarks += self.left_out(total)
        at = [some[k] for k in kept]
        if gray or (channels is None and not _coloured(images)):
            images = np.ascontiguousarray(images[..., 0])
        return Pictures(images, np.array([found.labels[k] for k in at]), [str(found.files[k]) for k in at])

    def read(self, files: Sequence[Path], layout: Layout) -> tuple[np.ndarray, list[int]]:
        """The images that can be read, of shape (n, height, width, channels), and which of the files they are."""
        shape = (len(files), layout.height, layout.width, layout.channels)
        if np.prod(shape, dtype=float) > MOST_BYTES:
            raise ValueError(
                f"{len(files):,} images of {layout.width} x {layout.height} pixels take more than "
                f"{MOST_BYTES / 2**30:g} GB: ask for a smaller size, such as "
                f"{self.ways.size.format(layout.width // 2, layout.height // 2)}."
            )
        images = np.empty(shape, np.uint8)
        kept: list[int] = []
        decode = partial(self._decoder.pixels, layout=layout)
        for k, pixels in enumerate(self._each(decode, files, "reading images")):
            if not isinstance(pixels, Unreadable):
                images[len(kept)] = pixels
                kept.append(k)
            else:
                self.bad[files[k]] = pixels.why
        return images[: len(kept)], kept

    def _headers(self, files: Sequence[Path]) -> list[Header | None]:
        found: list[Header | None] = []
        for path, header in zip(files, self._each(self._decoder.header, files, "sizes of images"), strict=True):
            if isinstance(header, Unreadable):
                self.bad[path] = header.why
            found.append(None if isinstance(header, Unreadable) else header)
        return found

    def _each(self, read: Callable[[Path], Read], files: Sequence[Path], label: str) -> Iterator[Read]:
        """What `read` says of each file, in order; some files ahead, by a few threads."""
        with ThreadPoolExecutor(min(THREADS, cpus())) as pool:
            for start in range(0, len(files), AT_ONCE):
                with self._decoder.at_work():
                    found = list(pool.map(read, files[start : start + AT_ONCE]))
                self.progress.update(label, min(start + AT_ONCE, len(files)), len(files))
                yield from found

    def _common_size(self, headers: list[Header]) -> tuple[int, int]:
        """The size of all or nearly all if it is not large, else about that of the middle one, reduced."""
        sizes = Counter(header[:2] for header in headers)
        (width, height), count = sizes.most_common(1)[0]
        if count >= AGREE * len(headers) and max(width, height) <= KEPT_SIDE:
            if count < len(headers):
                odd = f"{len(headers) - count:,} of {len(headers):,} images"
                self.remarks.append(f"All are brought to {width} x {height} pixels, which {odd} are not.")
            return width, height
        width, height = (int(np.median([header[side] for header in headers])) for side in (0, 1))
        share = min(1.0, COMMON_SIDE / max(width, height))
        common = max(1, round(share * width)), max(1, round(share * height))
        what = f"have {len(sizes):,} sizes, about" if len(sizes) > 1 else "are"
        asked = self.ways.size.format(*common)
        self.remarks.append(
            f"Images {what} {width} x {height} pixels: all are brought to {common[0]} x {common[1]} ({asked}, or "
            "another)."
        )
        return common

    def check(self, total: int, beyond: str = "") -> None:
        """An error where too many of so many files, or all, cannot be read."""
        if len(self.bad) <= self.skip and len(self.bad) < total:
            return
        way = f", or leave them out with {self.ways.skip.format(len(self.bad))}" if len(self.bad) < total else ""
        raise ValueError(f"{self._unreadable(total)}{beyond if way else ''}: mend them{way}.")

    def left_out(self, total: int) -> list[str]:
        """What is to be said of files, or of bits of theirs, that were left out."""
        return [*([f"{self._unreadable(total)}: they are left out."] if self.bad else []), *self._dark(total)]

    def _dark(self, total: int) -> list[str]:
        """What is to be said of images of 16 bits that do not use them; an error where nothing is left of any image."""
        brightest = self._decoder.brightest
        most = max(brightest, default=FULL_DEPTH)
        if most >= FULL_DEPTH:
            return []
        what = f"No number in the images of 16 bits is above {most:,} of 65,535, and their upper eight bits are kept"
        way = "write them with 8 bits, or stretched to 16"
        if most < 2**8 and len(brightest) + len(self.bad) >= total:
            raise ValueError(f"{what}, which are all zero: {way}.")
        return [f"{what}, which leaves {(most >> 8) + 1} levels of brightness: {way}."]

    def _unreadable(self, total: int) -> str:
        """Which files of so many cannot be read, and why, as the beginning of a sentence."""
        named = [f"{shortened(f'{path.parent.name}/{path.name}')} ({why})" for path, why in self.bad.items()][:NAMED]
        more = f" and {len(self.bad) - NAMED:,} more" if len(self.bad) > NAMED else ""
        return f"{len(self.bad):,} of {total:,} images cannot be read, {', '.join(named)}{more}"


def _coloured(images: np.ndarray) -> bool:
    """Whether any pixel is not gray, what a lossy format does to gray ones aside."""
    return any((image.max(axis=-1) - image.min(axis=-1) > GRAY_LEVELS).any() for image in images)
