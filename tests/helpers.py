"""Problems with known answers, and the one tolerance of the suite."""

from itertools import pairwise

import numpy as np


def tolerance(dtype="float64", condition=1.0):
    """Relative tolerance: rounding of the dtype times what the condition number makes of it, with a factor of 100.

    In float64 with a condition of up to 1e5 it is at most 1e-8 by construction of the factor and this bound.
    """
    return max(100 * float(np.finfo(dtype).eps) * condition, 1e-12 if dtype == "float64" else 1e-5)


def close(actual, desired, dtype="float64", condition=1.0):
    """Assert equality within `tolerance`, relative to the largest entry."""
    actual, desired = np.asarray(actual, dtype=float), np.asarray(desired, dtype=float)
    assert actual.shape == desired.shape
    scale = np.abs(desired).max() if desired.size else 0.0
    np.testing.assert_allclose(actual, desired, rtol=0, atol=tolerance(dtype, condition) * max(scale, 1e-300))


def from_svd(n, d, singular_values, seed=0):
    """(X, U, s, V) with X = U diag(s) V' exactly known: n x d of rank len(s)."""
    rng = np.random.default_rng(seed)
    s = np.sort(np.asarray(singular_values, dtype=float))[::-1]
    r = len(s)
    assert r <= min(n, d)
    U = np.linalg.qr(rng.standard_normal((n, r)))[0]
    V = np.linalg.qr(rng.standard_normal((d, r)))[0]
    return (U * s) @ V.T, U, s, V


def blobs(n=200, d=6, classes=3, seed=0):
    """Overlapping classes with unequal columns."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.standard_normal((n, d)) + 1.2 * rng.standard_normal((classes, d))[y]
    return X * np.linspace(0.5, 2, d) + 3, y


def cuts(n, k, rng):
    """k random cut points of n rows, as a list of slices (some may be empty)."""
    at = np.sort(rng.integers(0, n + 1, size=k))
    edges = [0, *at.tolist(), n]
    return [slice(a, b) for a, b in pairwise(edges)]
