"""The output layer solved from K: against ridge regression on features, and against refits without each row."""

import numpy as np
import pytest
import torch

from helpers import close
from pilae._arrays import to_numpy
from pilae._engine import dual
from pilae._engine.dual import inverse_blocks, solve_dual

RIDGE = 0.01
CONDITION = {"condition": 1 / RIDGE, "terms": 40}
"""The constant in K is as large as its diagonal on each of the 40 rows."""


def problem(n=40, d=60, outputs=3, seed=0):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n, d)) + 3.0
    return F, F[:, :outputs] ** 2 + rng.standard_normal((n, outputs))


def refitted(F, Z, ridge):
    """Coefficients and intercept by the features: the ridge is relative to the mean of the diagonal of K."""
    middle = F.mean(axis=0)
    G = F - middle
    K = G @ G.T
    a = np.linalg.solve(K + ridge * np.eye(len(K)), Z - Z.mean(axis=0))
    W = G.T @ a
    return W, Z.mean(axis=0) - middle @ W


def test_the_dual_solution_is_that_of_the_features(library):
    F, Z = problem()
    G = F - F.mean(axis=0)
    penalty = RIDGE * np.mean(np.sum(G**2, axis=1))
    W, b = refitted(F, Z, penalty)
    found = solve_dual(library(F @ F.T) + 0.0, Z, [RIDGE], np.ones(3))
    new = problem(seed=1)[0]
    close(new @ F.T @ to_numpy(found.a) + to_numpy(found.b), new @ W + b, condition=1e4, terms=60)


def test_leave_one_out_is_that_of_refits_without_the_row(library):
    F, Z = problem()
    G = F - F.mean(axis=0)
    penalty = RIDGE * np.mean(np.sum(G**2, axis=1))
    found = solve_dual(library(F @ F.T) + 0.0, Z, [RIDGE], np.ones(3))
    for row in (0, 7, 39):
        rest = np.arange(len(F)) != row
        W, b = refitted(F[rest], Z[rest], penalty)
        close(found.loo.outputs[row], F[row] @ W + b, condition=1e4, terms=60)


@pytest.mark.parametrize("copies", [1, 2])
def test_leave_one_out_without_a_ridge_is_that_of_refits(copies):
    F, _ = problem()
    Z = problem(n=40 // copies, seed=5)[1]
    found = solve_dual(F @ F.T, Z, [0.0], np.ones(3), copies)
    targets = np.repeat(Z, copies, axis=0)
    for row in (0, 11):
        rest = np.arange(40) // copies != row
        W, b = refitted(F[rest], targets[rest], 0.0)
        close(found.loo.outputs[row], F[copies * row] @ W + b, condition=1e6, terms=60)


def test_rows_that_rounding_does_not_tell_apart_get_a_larger_ridge_or_a_sentence():
    rng = np.random.default_rng(0)
    K = 1.0 + 1e-3 * np.eye(60) + 5e-4 * rng.standard_normal((60, 60))  # noise larger than what they differ by
    K, Z = K + K.T, rng.standard_normal((60, 1))
    assert solve_dual(K.copy(), Z, [1e-1], np.ones(1)).ridge == 10.0
    with pytest.raises(ValueError, match="too much alike to be told apart in float64"):
        solve_dual(K.copy(), Z, [1e-6], np.ones(1))


def test_the_ridge_with_the_lowest_error_is_taken():
    F, Z = problem(n=80, d=10)
    ridges, scale = [1e-3, 1e-1, 10.0], np.ones(3)
    each = {ridge: solve_dual(F @ F.T, Z, [ridge], scale).loo.squared_error(scale) for ridge in ridges}
    assert solve_dual(F @ F.T, Z, ridges, scale).ridge == min(each, key=each.get)


def test_rounding_in_k_does_not_grow_with_the_rows():
    """K as a GPU gives it, not quite symmetric: outputs for rows of training are what they were fitted to be."""
    rng = np.random.default_rng(0)
    n = 600
    F = rng.standard_normal((n, 1000)) / 1000**0.5
    K = 0.999 + 0.001 * (F @ F.T)  # all alike but for a thousandth
    K32 = K.astype(np.float32) * (1 + 1e-6 * np.tri(n, dtype=np.float32))
    Z = (F[:, :1] > 0).astype(float)
    exact, rounded = (solve_dual(k.copy(), Z, [1e-2], np.ones(1)) for k in (K, K32))
    outputs = [K.astype(np.float64) @ s.a + s.b for s in (exact, rounded)]
    assert np.abs(outputs[0] - outputs[1]).max() < 0.05


def test_rows_that_are_copies_leave_together(library):
    """Three rows, not the same, of one target: left out by hand, all three."""
    F, _ = problem(n=45)
    Z = problem(n=15, seed=3)[1]
    G = F - F.mean(axis=0)
    penalty = RIDGE * np.mean(np.sum(G**2, axis=1))
    found = solve_dual(library(F @ F.T) + 0.0, Z, [RIDGE], np.ones(3), copies=3)
    W, b = refitted(F, np.repeat(Z, 3, axis=0), penalty)
    close(F @ F.T @ to_numpy(found.a) + to_numpy(found.b), F @ W + b, condition=1e4, terms=60)
    assert len(found.loo.outputs) == 15
    for row in (0, 7, 14):
        rest = np.arange(45) // 3 != row
        W, b = refitted(F[rest], np.repeat(Z, 3, axis=0)[rest], penalty)
        close(found.loo.outputs[row], F[3 * row] @ W + b, condition=1e4, terms=60)


@pytest.mark.parametrize(("n", "size"), [(1, 1), (5, 1), (5, 5), (300, 1), (300, 5)])
def test_blocks_of_an_inverse(n, size, monkeypatch):
    monkeypatch.setattr("pilae._engine.dual.SOLVED", 128)
    X = np.random.default_rng(n).standard_normal((n, n + 5))
    A = X @ X.T + np.eye(n)
    expected = np.linalg.inv(A).reshape(n // size, size, n // size, size)
    expected = np.stack([expected[k, :, k, :] for k in range(n // size)])
    close(inverse_blocks(np.linalg.cholesky(A), size), expected, condition=float(np.linalg.cond(A)))


def test_the_inverse_of_a_factor_takes_its_place(monkeypatch):
    """In blocks, however many of them there are."""
    monkeypatch.setattr(dual, "SOLVED", 4)
    monkeypatch.setattr(dual, "INVERTED_AT_ONCE", 8)
    A = np.random.default_rng(0).standard_normal((27, 40))
    A = A @ A.T + np.eye(27)
    for size in (1, 3):
        L = np.linalg.cholesky(A)
        C = np.linalg.inv(A)
        expected = [C[k : k + size, k : k + size] for k in range(0, 27, size)]
        close(inverse_blocks(L, size), np.stack(expected), condition=float(np.linalg.cond(A)))
        close(L.T @ L, C, condition=float(np.linalg.cond(A)))


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_where_rounding_leaves_no_factor_the_next_larger_ridge_is_taken(library):
    """K is not positive definite by more than the ridge."""
    F, Z = problem()
    K = F @ F.T
    K -= 0.05 * np.mean(np.diag(K - K.mean(axis=0))) * np.eye(len(K))
    if library == "torch":
        K = torch.asarray(K)
    found = solve_dual(K, Z, [1e-3], np.ones(Z.shape[1]))
    assert found.ridge == pytest.approx(0.1)
