"""What a model file may hold: each class is listed where it is defined, and the file format reads the list."""

from typing import Any, TypeVar

Kind = TypeVar("Kind")

KINDS: dict[str, type] = {}


def saveable(cls: type[Kind]) -> type[Kind]:
    """List a class whose objects may be in a file: they are restored from their attributes alone."""
    KINDS[cls.__name__] = cls
    return cls


def check_dtype(dtype: object) -> None:
    """Of a dtype in a file that somebody else wrote: NumPy would ask anything else for its name, and run its code."""
    if not isinstance(dtype, str):
        raise TypeError("a dtype is a word")


def check_shape(x: Any, *shape: int) -> None:
    """Of an array in a file that somebody else wrote."""
    if tuple(x.shape) != shape:
        raise ValueError(f"an array has shape {tuple(x.shape)}, not {shape}")
