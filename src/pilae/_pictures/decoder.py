"""One file at a time: its size, and its pixels in the size that is asked for. Needs Pillow."""

import contextlib
import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .._base.extras import extra
from .._tables.errors import reason

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")
"""Pillow reads many more; what nobody asks for is no way in for hostile files."""

MOST_PIXELS = 50_000_000
"""Of an image as it is decoded: a file of a few bytes can claim to hold any number."""

LARGE_PIXELS = 2**22
"""Larger images are decoded one after the other, for the sake of memory."""

GRAY = ("1", "L", "LA", "La", "I;16", "I;16L", "I;16B")
"""Pillow's modes without colours."""

ORIENTATION = 0x0112
"""The tag of Exif that says which way up a camera was."""

SIDEWAYS = (5, 6, 7, 8)
"""Of its values those that exchange width and height."""


class Layout(NamedTuple):
    """What images are brought to: pixels, and 1 channel for gray or 3 for colours."""

    width: int
    height: int
    channels: int


class Header(NamedTuple):
    """What a file says of its image before it is decoded."""

    width: int
    height: int
    gray: bool


class Unreadable(NamedTuple):
    """Why a file cannot be read."""

    why: str


class Decoder:
    """Pillow, with bounds on what a file may take. Threads may share it."""

    def __init__(self) -> None:
        self._pillow = extra("PIL.Image", "images", "Reading images")
        self._pillow.init()  # not while threads are at work
        self._formats = [name for name in FORMATS if name in self._pillow.OPEN]
        self._large = threading.Lock()
        self.brightest: list[int] = []
        """The largest number of each image of 16 bits."""

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Claims of too many pixels are errors meanwhile, and other remarks of Pillow's on odd files are left out."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", self._pillow.DecompressionBombWarning)
            yield

    def header(self, path: str | os.PathLike) -> Header | Unreadable:
        try:
            with self._pillow.open(path, formats=self._formats) as image:
                turned = image.format != "TIFF" and self._orientation(image) in SIDEWAYS  # Pillow turns TIFF itself
                width, height = image.size[::-1] if turned else image.size
                return Header(width, height, image.mode in GRAY)
        except Exception as error:  # of Pillow's plugins, which have no class in common
            return self._unreadable(error)

    def pixels(self, path: str | os.PathLike, layout: Layout) -> np.ndarray | Unreadable:
        """Bytes of shape (height, width, channels): the whole image, the way up it was taken, on white where it is
        transparent, stretched where its sides have another proportion. Of several frames the first."""
        try:
            with self._pillow.open(path, formats=self._formats) as image:
                side = 2 * max(layout.width, layout.height)  # enough to be reduced well, whichever way up
                image.draft(None, (side, side))  # JPEG is decoded at an eighth of its size or more
                count = image.width * image.height
                if count > MOST_PIXELS:
                    return Unreadable(f"it has {count:,} pixels, and up to {MOST_PIXELS:,} are read")
                with self._large if count > LARGE_PIXELS else contextlib.nullcontext():
                    image.load()
                    return self._brought(image, layout)
        except Exception as error:
            return self._unreadable(error)

    def _brought(self, image: Any, layout: Layout) -> np.ndarray:
        orientation, size = self._orientation(image), (layout.width, layout.height)
        flat = self._flat(image, "L" if layout.channels == 1 else "RGB")
        wanted = size[::-1] if orientation in SIDEWAYS else size
        if flat.size != wanted:
            flat = flat.resize(wanted, self._pillow.Resampling.BILINEAR, reducing_gap=3.0)
        pixels = upright(np.asarray(flat), orientation)
        return pixels.reshape(layout.height, layout.width, layout.channels)

    def _flat(self, image: Any, mode: str) -> Any:
        """Eight bits for each channel, on white."""
        if image.mode.startswith("I;16"):  # Pillow would cut at 255
            levels = np.asarray(image)
            self.brightest.append(int(levels.max()))
            return self._pillow.fromarray((levels >> 8).astype(np.uint8)).convert(mode)
        if image.mode in ("I", "F"):
            raise ValueError("its numbers of 32 bits have no brightest value: write it with 8 or 16 bits")
        if image.has_transparency_data:
            image = image.convert("RGBA")
            image = self._pillow.alpha_composite(self._pillow.new("RGBA", image.size, "white"), image)
        return image.convert(mode)

    @staticmethod
    def _orientation(image: Any) -> int:
        """Which way up the camera was; 1 where a file does not say, or says nothing that can be read."""
        try:
            return int(image.getexif().get(ORIENTATION, 1))
        except Exception:  # the pixels may be whole where the remarks of a camera are not
            return 1

    def _unreadable(self, error: Exception) -> Unreadable:
        if isinstance(error, MemoryError):
            raise error
        if isinstance(error, self._pillow.UnidentifiedImageError):
            return Unreadable("no image of a kind that is read")
        if isinstance(error, OSError) and error.strerror:
            return Unreadable(error.strerror)
        return Unreadable(reason(error))


def upright(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Turned as Exif's orientation says: the image is stored mirrored or turned, and this undoes it."""
    if orientation in SIDEWAYS:
        pixels = pixels.swapaxes(0, 1)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return pixels[::-1] if orientation in (3, 4, 7, 8) else pixels
