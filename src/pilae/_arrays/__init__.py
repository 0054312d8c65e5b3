"""Array libraries, devices, kernels: the only place that names torch or cupy.

Everything else is written against the array API standard, and imports from here what the standard lacks.
"""
# ruff: noqa: F401

from .conversions import as_labels, contiguous, detached, dtype_name, float_name, is_numeric, take_rows, word_sums
from .cuda import full_products, sender
from .kernels import (
    cholesky,
    diagonal,
    expit,
    gram,
    inner_products,
    matmul,
    overwritten_by_exp,
    plus_diagonal,
    solve_triangular,
    times_powers,
)
from .space import NUMPY, Array, Space, is_foreign, is_tensor, namespace, space_for, space_of, to_numpy
