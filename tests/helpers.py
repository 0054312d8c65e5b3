"""Problems with known answers, and the one tolerance of the suite."""

import dataclasses
from itertools import pairwise

import numpy as np

from pilae import PILAutoencoder
from pilae._arrays import to_numpy
from pilae._network.averaged import taken_apart
from pilae._network.output import standardised

SAFETY = 16
"""What a tolerance leaves for another BLAS, number of threads and processor, and for the steps of a computation that
each round once more."""


def tolerance(dtype="float64", condition=1.0, terms=1):
    """How far, relative to the largest entry, two ways to the same result may be apart.

    A sum of n terms is off by at most n eps times the sum of their sizes, in whatever order they are added; since each
    rounding goes either way, by about sqrt(n) eps. What is solved from such sums is off by the condition number of the
    system times that. Hence SAFETY * sqrt(terms) * eps * condition, with the eps of the dtype that is computed in.
    """
    return SAFETY * terms**0.5 * float(np.finfo(dtype).eps) * condition


def close(actual, desired, dtype="float64", condition=1.0, terms=1):
    """Assert equality within `tolerance`, relative to the largest entry."""
    actual, desired = np.asarray(actual, dtype=float), np.asarray(desired, dtype=float)
    assert actual.shape == desired.shape
    scale = np.abs(desired).max() if desired.size else 0.0
    np.testing.assert_allclose(actual, desired, rtol=0, atol=tolerance(dtype, condition, terms) * max(scale, 1e-300))


def rounding(model):
    """The dtype, condition and terms of what a fitted classifier or regressor was solved from.

    The rows it holds are added up, then its features. The condition number is the largest of its systems: that of the
    output layer, the standardised Gram of its features with the ridge (docs/maths.md); those of layers, at most their
    width over the ridge of the decoder; that of neurons, at most the number of columns over a ridge of about one.
    """
    conditions, columns = [model.n_features_in_], 0
    for network, head in taken_apart(model.network_, model.head_):
        moments = head.output.moments
        values = np.linalg.eigvalsh(to_numpy(standardised(moments, head.hidden)[1]))
        lam, columns = head.output.ridge * moments.weight, max(columns, len(values))
        conditions.append((values[-1] + lam) / (max(values[0], 0.0) + lam))
        conditions += [layer.width / (model.layer or PILAutoencoder()).decoder_ridge for layer in network.layers]
    return {"dtype": moments.product, "condition": max(conditions), "terms": moments.count + columns}


def searched(model):
    """The same of the worst candidate that the search of a fitted model tried, whose errors it compares."""
    condition = max(row["width"] / row["ridge"] for row in model.search_)
    return rounding(model) | {"condition": condition}


def evaluation(function, rows, dtype):
    """The dtype and condition of what a fitted model says of rows, found by moving them a little.

    Every number of the rows is moved by a step, up or down. What that moves the largest answer by, over the step, is
    what evaluation makes of a rounding. The step is far above rounding and far below where answers bend.
    """
    step = 2.0**-16
    signs = np.random.default_rng(0).choice([-1.0, 1.0], np.shape(rows))
    moved, answers = (np.asarray(function(x.astype(rows.dtype)), float) for x in (rows * (1 + step * signs), rows))
    return {"dtype": dtype, "condition": max(1.0, np.abs(moved - answers).max() / (step * np.abs(answers).max()))}


def shown(rounded, exact):
    """A condition by experiment: what became of the rounding of float32 in one result, float64 having the other."""
    off = np.abs(np.asarray(rounded, float) - exact).max() / np.abs(exact).max()
    return max(1.0, off / float(np.finfo("float32").eps))


def interpolation(model, X):
    """The condition and terms of basic pseudoinverse learning at its rows: those of its last features."""
    features = dataclasses.replace(model.fitted_, output=np.eye(len(model.output_))).outputs(X)
    return {"condition": np.linalg.cond(features), "terms": len(model.output_)}


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
