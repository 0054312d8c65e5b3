"""What the header of a `.npy` file claims, before memory is taken for it."""

import math
from typing import IO

import numpy as np


def claimed_array(file: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype]:
    """(shape, Fortran order, dtype) of an array in a file of so many bytes, which must be exactly those it claims.

    The file is left where the numbers begin. Whatever is wrong raises an error, of many classes.
    """
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError("it is in an .npy format of later days")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are never read")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size - file.tell():
        raise ValueError(f"it is not as long as its shape {shape} says")
    return shape, fortran, dtype
