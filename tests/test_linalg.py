"""Ranks, pseudoinverses and ridges against problems whose SVD is known."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from helpers import close, from_svd
from pilae._arrays import space_of
from pilae._engine import linalg
from pilae._engine.factors import RidgeFactors
from pilae._engine.linalg import (
    DualGram,
    PrimalGram,
    Triangle,
    TriangleSum,
    lasso_solve,
    pseudoinverse,
    rank_cutoff,
    ridge_solve,
)

# one table of cases: n, d, singular values
CASES = {
    "tall": (50, 8, np.linspace(1, 3, 8)),
    "wide": (8, 50, np.linspace(1, 3, 8)),
    "rank-deficient": (40, 12, np.linspace(1, 10, 5)),
    "square": (10, 10, np.logspace(0, 2, 10)),
}


@pytest.fixture(params=CASES)
def problem(request):
    n, d, s = CASES[request.param]
    return from_svd(n, d, s)


def triangle(*blocks, weight=None):
    """The triangle of the blocks, each a sum of its own until they are merged."""
    sums = [TriangleSum() for _ in blocks]
    for total, block in zip(sums, blocks, strict=True):
        total.add(block, weight)
    for total in sums[1:]:
        sums[0].merge(total)
    return sums[0].R


def spectra(X, library):
    """Every route to the same answers."""
    x = library(X)
    yield PrimalGram(library(X.T @ X))
    yield DualGram(x)
    yield Triangle(triangle(x[:5, :], x[5:, :]))


def test_every_route_gives_rank_singular_values_and_pseudoinverse(problem, library):
    X, _, s, V = problem
    squared = {"condition": (s[0] / s[-1]) ** 2, "terms": max(X.shape)}  # a Gram squares the condition number
    for spectrum in spectra(X, library):
        assert spectrum.rank == len(s)
        close(library.numpy(spectrum.s), s, **squared)
        W = spectrum.pinv_rows(library(X), 0.0)
        assert library.owns(W)
        X_plus = np.linalg.pinv(X, rcond=1e-10)
        close(library.numpy(W), X_plus, **squared)
        close(library.numpy(spectrum.truncated(2)) ** 2, (V[:, :2] / s[:2]) ** 2, **squared)
        close(library.numpy(spectrum.quadratic(W)), np.sum((X @ X_plus) ** 2, axis=0), **squared)
        close(float(spectrum.trace), np.sum(s**2), terms=X.size)


@pytest.mark.parametrize("ridge", [1e-6, 1e-2, 1.0, np.inf])
def test_primal_equals_dual_at_every_ridge(problem, ridge):
    X, _, s, _ = problem
    G = X.T @ X
    primal, dual = PrimalGram(G), DualGram(X)
    W = primal.pinv_rows(X[:3], ridge)
    regularised = G + (0 if np.isinf(ridge) else ridge) * np.trace(G) / len(G) * np.eye(len(G))
    solved = {"condition": 1.0 if np.isinf(ridge) else np.linalg.cond(regularised), "terms": max(X.shape)}
    by_vectors = solved | {"condition": max(solved["condition"], (s[0] / s[-1]) ** 2)}  # the dual route, at any ridge
    close(dual.pinv_rows(X[:3], ridge), W, **by_vectors)
    if np.isinf(ridge):
        close(W, X[:3].T)
        assert primal.route == dual.route == "prototypes"
    else:
        close(W, np.linalg.solve(regularised, X[:3].T), **solved)
        assert primal.route == "cholesky"
        assert dual.route == "dual"


def test_weights_mean_repeated_rows():
    X = from_svd(6, 20, [3, 2, 1, 1, 1])[0]
    k = np.array([1, 2, 3, 1, 1, 2])
    weighted, repeated = DualGram(X, k.astype(float)), DualGram(X.repeat(k, axis=0))
    close(weighted.pinv_rows(X, 1e-3), repeated.pinv_rows(X, 1e-3), condition=20 / 1e-3, terms=20)
    R = Triangle(triangle(X, weight=k.astype(float)))
    close(R.pinv_rows(X, 0.0), repeated.pinv_rows(X, 0.0), condition=3 * 3**2, terms=20)


def test_rank_cutoff_of_a_gram_is_the_square_root():
    close(rank_cutoff(100, gram=True), np.sqrt(100 * np.finfo(float).eps))
    close(rank_cutoff(100, gram=False), 100 * np.finfo(float).eps)


def test_triangle_sees_what_a_gram_cannot():
    X = from_svd(60, 10, np.logspace(0, -9, 10))[0]
    assert PrimalGram(X.T @ X).rank < 10
    assert not PrimalGram(X.T @ X).well_conditioned()
    exact = Triangle(triangle(X))
    assert exact.rank == 10
    close(exact.pinv_rows(X, 0.0), np.linalg.pinv(X, rcond=1e-14), condition=1e9, terms=60)


def test_ridge_solve_equals_scikit_learn(library):
    rng = np.random.default_rng(0)
    H, X = rng.standard_normal((40, 7)), rng.standard_normal((40, 3))
    W, route = ridge_solve(library(H.T @ H), library(H.T @ X), 0.7)
    assert route == "cholesky"
    expected = Ridge(alpha=0.7, fit_intercept=False).fit(H, X).coef_.T
    close(library.numpy(W), expected, condition=np.linalg.cond(H) ** 2, terms=40)


def test_ridge_solve_falls_back_and_says_so(library):
    H = from_svd(30, 6, [3.0, 2.0, 1.0])[0]
    G = H.T @ H - 1e-9 * np.eye(6)  # what rounding can leave: not positive definite
    W, route = ridge_solve(library(G), library(H.T @ H), 1e-12)
    assert route == "eigh"
    moved = 1e-9 / np.finfo(float).eps  # in roundings
    close(library.numpy(W), np.linalg.pinv(H) @ H, condition=moved)


def test_pseudoinverse_returns_its_rank(problem, library):
    X, _, s, _ = problem
    X_plus, rank = pseudoinverse(library(X))
    assert rank == len(s)
    close(library.numpy(X_plus), np.linalg.pinv(X, rcond=1e-10), condition=(s[0] / s[-1]) ** 2, terms=max(X.shape))
    assert space_of(X_plus) == space_of(library(X))


@pytest.mark.parametrize("ridge", [0.0, 1e-25, 1e-18, 1e-16])
def test_a_ridge_below_rounding_leaves_directions_without_variance_alone(ridge, library):
    """A Cholesky factor of a singular Gram exists by luck, and says noise about those directions."""
    for seed in range(20):
        X, _, s, _ = from_svd(60, 8, np.linspace(1, 3, 5), seed=seed)
        Z = np.random.default_rng(seed).standard_normal((60, 2))
        G, C = library(X.T @ X), library(X.T @ Z)
        expected = np.linalg.pinv(X, rcond=1e-10) @ Z
        for W in (
            ridge_solve(G, C, ridge)[0],
            PrimalGram(G).pinv_rows(C.mT, ridge * 8 / float(np.sum(s**2))),
            RidgeFactors(G, C, 1.0).at(ridge).coefficients(),
            RidgeFactors(G, C, 1.0, nested=True).at(ridge).coefficients(),
        ):
            close(library.numpy(W), expected, condition=3**2, terms=60)


# ------------------------------------------------------------------------------------------------- sparse decoders


@pytest.mark.parametrize("condition", [1.0, 1e3])
def test_lasso_is_scikit_learns(condition):
    """The same weights as coordinate descent on the rows, from the Gram alone; exact zeros."""
    from sklearn.linear_model import Lasso

    H, *_ = from_svd(200, 12, np.geomspace(1, 1 / condition, 12) * 10)
    rng = np.random.default_rng(0)
    X = H @ (rng.standard_normal((12, 3)) * (rng.random((12, 3)) < 0.4)) + 0.01 * rng.standard_normal((200, 3))
    C = H.T @ X
    steps = 1e-12 / np.finfo(float).eps  # both end with, in roundings
    for share in (0.3, 0.03):
        l1 = share * np.abs(C).max(axis=0, keepdims=True)
        W = lasso_solve(H.T @ H, C, l1, 0.0, tolerance=1e-12, most=20_000)
        for j in range(3):
            expected = Lasso(alpha=l1[0, j] / 200, fit_intercept=False, tol=1e-12, max_iter=10**6).fit(H, X[:, j]).coef_
            close(W[:, j], expected, condition=steps * condition)
            np.testing.assert_array_equal(W[:, j] == 0, expected == 0)


def test_lasso_without_penalty_is_ridge_and_with_all_of_it_nothing():
    H, *_ = from_svd(50, 8, np.linspace(1, 2, 8))
    C = H.T @ np.random.default_rng(0).standard_normal((50, 4))
    G = H.T @ H
    W = lasso_solve(G, C, np.zeros((1, 4)), 0.1, tolerance=1e-12, most=5000)
    steps = 1e-12 / np.finfo(float).eps  # it ends with, in roundings
    close(W, np.linalg.solve(G + 0.1 * np.eye(8), C), condition=steps)
    assert not lasso_solve(G, C, 1.001 * np.abs(C).max(axis=0, keepdims=True), 0.0).any()
    tiny = np.where(np.arange(4) == 2, 1e-320, C)  # a column that is next to nothing beside the penalty of all
    assert not lasso_solve(G, tiny, np.full((1, 4), 1e-6 * np.abs(C).max()), 0.1)[:, 2].any()


@pytest.mark.parametrize("vectors_first", [True, False])
def test_rank_and_directions_agree_where_solvers_see_the_cut_off_differently(vectors_first, monkeypatch):
    G, counts = np.diag([1.0, 0.1, 0.01]), iter([2, 3])
    monkeypatch.setattr(linalg, "_count_kept", lambda values, product: next(counts))
    gram = PrimalGram(G)
    found = [gram.s, gram.squares] if vectors_first else [gram.squares, gram.s]
    assert [len(values) for values in found] == [2, 2]
    assert gram.rank == gram.V.shape[1] == 2
