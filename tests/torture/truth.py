"""Every solver, against the same problem solved with 50 digits: no error is above the bound that docs/maths.md states.

Problems are built from their singular values, with condition numbers from 1 to 1e14; the reference takes the very
numbers the solver got. Each bound is `roundings(n, d) * eps` times what the route makes of the condition number. Beyond
the end of a route (directions under the rank cut-off) the answer must be that of the directions that are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import mpmath
import numpy as np

from pilae import PILAutoencoder, StackedPILAE
from pilae._arrays import NUMPY
from pilae._engine.factors import RidgeFactors
from pilae._engine.linalg import (
    WELL_CONDITIONED,
    DualGram,
    PrimalGram,
    Triangle,
    TriangleSum,
    lasso_solve,
    pseudoinverse,
    rank_cutoff,
    ridge_solve,
    solve_on_support,
)
from pilae._engine.loo import leave_one_out
from pilae._engine.moments import FLOAT32_RIDGE, Moments
from pilae._engine.widths import _by_outputs, _by_products
from pilae._network.head import LinearHead
from pilae._network.layer import _decoder, _narrowest, decoder_with_bias
from pilae._network.output import Output
from torture.harness import Broken

QUICK = {"seeds": 1}
FULL = {"seeds": 12}

DIGITS = 50
EXPONENTS = range(0, 15, 2)
"""Condition numbers are ten to the power of these."""

SIZES = ((12, 5), (40, 10))
RIDGES = (0.0, 1e-22, 1e-18, 1e-16, 1e-14, 1e-11, 1e-8, 1e-5, 1e-2)
"""Relative to the squared largest singular value."""

LASSO_TOLERANCE = 1e-4
"""The change of a step at which `lasso_solve` ends; there are about sqrt(condition) steps of that size to go."""


class Found(NamedTuple):
    """What one solver did: its route, the error, and the bound the error must not pass."""

    route: str
    error: float
    bound: float


class Problem(NamedTuple):
    X: np.ndarray
    s: np.ndarray
    """The singular values it was built from; rounding X moves them by eps of the largest."""
    condition: float
    rng: np.random.Generator


def run(seeds: int) -> dict:
    """Cases, and the worst error over bound, by route."""
    worst: dict[str, float] = {}
    cases: Counter = Counter()
    with mpmath.workdps(DIGITS):
        for seed in range(seeds):
            for exponent in EXPONENTS:
                for n, d in SIZES:
                    for check in CHECKS:
                        where = f"truth.{check.__name__}(truth.problem({n}, {d}, 1e{exponent}, seed={seed}))"
                        for found in check(problem(n, d, 10.0**exponent, seed)):
                            if not found.error <= found.bound:  # not a number is broken, too
                                raise Broken(
                                    f"{found.route}: the error {found.error:.3g} is above its bound {found.bound:.3g}; "
                                    f"see again: with mpmath.workdps({DIGITS}): list({where})"
                                )
                            cases[found.route] += 1
                            worst[found.route] = max(worst.get(found.route, 0.0), found.error / found.bound)
    return {
        "cases": sum(cases.values()),
        "routes": dict(cases),
        "worst_error_over_bound": {route: float(f"{ratio:.2g}") for route, ratio in worst.items()},
    }


def problem(n: int, d: int, condition: float, seed: int) -> Problem:
    """n x d numbers of full rank whose singular values fall evenly from 1 to 1 / condition."""
    rng = np.random.default_rng([seed, n, d, round(np.log10(condition))])
    U, V = np.linalg.qr(rng.standard_normal((n, d)))[0], np.linalg.qr(rng.standard_normal((d, d)))[0]
    s = np.geomspace(1.0, 1.0 / condition, d)
    return Problem((U * s) @ V.T, s, condition, rng)


def roundings(n: int, d: int) -> float:
    """Errors of sums of so many terms, which go either way."""
    return 4.0 * (n + d) ** 0.5


EPS = float(np.finfo(np.float64).eps)
EPS32 = float(np.finfo(np.float32).eps)


# ------------------------------------------------------------------------------------------------- 50 digits


def exact(A: np.ndarray) -> np.ndarray:
    """The same numbers with 50 digits."""
    return np.vectorize(mpmath.mpf, otypes=[object])(np.asarray(A, dtype=np.float64))


def solve(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A^-1 B by Gaussian elimination, with rows exchanged."""
    A, B, n = A.copy(), B.copy(), len(A)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(A[k:, k]).astype(float)))
        A[[k, pivot]], B[[k, pivot]] = A[[pivot, k]], B[[pivot, k]]
        factor = A[k + 1 :, k] / A[k, k]
        A[k + 1 :] -= factor[:, None] * A[k]
        B[k + 1 :] -= factor[:, None] * B[k]
    for k in reversed(range(n)):
        B[k] = (B[k] - A[k, k + 1 :] @ B[k + 1 :]) / A[k, k]
    return B


def norm(A: np.ndarray) -> float:
    """Root of the sum of squares."""
    return float(mpmath.sqrt(sum((x * x for x in A.ravel()), mpmath.mpf(0))))


def plus(G: np.ndarray, ridge: float) -> np.ndarray:
    return G + np.diag([mpmath.mpf(float(ridge))] * len(G))


def spectrum(E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(squared singular values, right singular vectors) of E, largest first."""
    values, V = mpmath.eigsy(mpmath.matrix((E.T @ E).tolist()))
    d = E.shape[1]
    V = np.array(V.tolist(), dtype=object).reshape(d, d)
    return np.array(list(values), dtype=object)[::-1], V[:, ::-1]


def pinv_of_top(values: np.ndarray, V: np.ndarray, E: np.ndarray, r: int) -> np.ndarray:
    """The pseudoinverse of E's r leading directions."""
    return V[:, :r] @ ((V[:, :r].T @ E.T) / values[:r, None])


# ------------------------------------------------------------------------------------------------- pseudoinverses


def pseudoinverses(case: Problem) -> Iterator[Found]:
    """X^+, its singular values and its leading directions: from the Gram, the dual Gram, the triangle, the SVD."""
    X, s, condition, _ = case
    n, d = X.shape
    E = exact(X)
    values, V = spectrum(E)
    c = roundings(n, d) * EPS
    triangle = TriangleSum()
    for start in range(0, n, 7):
        triangle.add(X[start : start + 7])
    direct, rank = pseudoinverse(X)
    routes: list[tuple[str, np.ndarray, int, float, int]] = [
        ("X^+, from the SVD", direct, rank, rank_cutoff(n, gram=True), 1)
    ]
    transposed = np.ascontiguousarray(X.T)  # fewer rows than columns: the dual form
    for name, found, rows, cut, power in (
        ("Gram", PrimalGram(X.T @ X), X, rank_cutoff(d, gram=True), 2),
        ("dual Gram", DualGram(transposed), transposed, rank_cutoff(d, gram=True), 2),
        ("QR", Triangle(triangle.R), X, rank_cutoff(d, gram=False), 1),
    ):
        W = found.pinv_rows(rows, 0.0)
        routes.append((f"X^+, from the {name}", W if rows is X else W.T, found.rank, cut, power))
        r = found.rank
        exact_s = np.sqrt(values[:r].astype(float))
        yield Found(f"singular values, from the {name}", float(np.max(np.abs(found.s**power - exact_s**power))), c)
        if rows is X and condition > 1:  # equal singular values have no directions of their own
            yield _directions(name, found.truncated(r), exact_s, V[:, :r], c, power)
    for name, W, r, cut, power in routes:
        if not np.sum(s > 1.5 * cut) <= r <= np.sum(s > cut / 1.5):
            yield Found(f"{name}: rank {r} of {s.tolist()} at cut-off {cut:.3g}", np.inf, 0.0)
        reference = pinv_of_top(values, V, E, r)
        yield Found(name, norm(W - reference) / norm(reference), c * (s[0] / s[r - 1]) ** power)


def _directions(name: str, W: np.ndarray, s: np.ndarray, V: np.ndarray, c: float, power: int) -> Found:
    """The truncated encoder, direction by direction: as exact as the gap to the next one allows."""
    reference = V / exact(s)
    top = np.abs(reference.astype(float)).argmax(axis=0)
    reference = reference * np.where(reference[top, range(len(s))] > 0, 1, -1)
    error = [norm((W - reference)[:, j]) * s[j] for j in range(len(s))]
    ratio = (s[1] / s[0]) ** power
    bound = c * (s[0] / s) ** power / (ratio * (1 - ratio))
    worst = int(np.argmax(np.array(error) / bound))
    return Found(f"truncated encoder, from the {name}", error[worst], float(bound[worst]))


def layers(case: Problem) -> Iterator[Found]:
    """The encoder of a fitted model with encoder_ridge=0: by the Gram while that is good enough, else by QR."""
    X, s, condition, _ = case
    n, d = X.shape
    model = StackedPILAE(
        width=[d],
        input_scaling="none",
        random_state=0,
        layer=PILAutoencoder(anchors="first", encoder_ridge=0, gain=None, tied=False, activation="linear"),
    ).fit(X)
    [layer] = model.layers_
    by_gram = condition <= 1 / WELL_CONDITIONED
    if layer.route != ("eigh" if by_gram else "qr"):
        yield Found(f"model, encoder_ridge=0: route {layer.route} at condition {condition:g}", np.inf, 0.0)
    E = exact(X)
    reference = solve(E.T @ E, E[:d].T)
    size = 1 / s[-1]  # of X^+: single rows of it can be much smaller
    power = 2 if by_gram else 1
    bound = roundings(n, d) * EPS * condition**power
    yield Found(f"model, encoder_ridge=0, by {layer.route}", norm(layer.weights - reference) / size, bound)


# ------------------------------------------------------------------------------------------------- ridges


class Ridge(NamedTuple):
    """The exact ridge solution from data, and what bounds the error of one that comes from the Gram."""

    W: np.ndarray
    bound: float


def ridge_reference(F: np.ndarray, Z: np.ndarray, s: np.ndarray, lam: float, eps: float = EPS) -> Ridge:
    """(F'F + lam)^-1 F'Z in the directions whose lifted square is above the rank cut-off."""
    n, d = F.shape
    E, T = exact(F), exact(Z)
    kept = s**2 + lam > d * EPS * s[0] ** 2
    if kept.all():
        W = solve(plus(E.T @ E, lam), E.T @ T)
    else:
        values, V = spectrum(E)
        r = int(kept.sum())
        W = V[:, :r] @ ((V[:, :r].T @ (E.T @ T)) / (values[:r] + mpmath.mpf(lam))[:, None])
    least = s[kept][-1] ** 2 + lam
    lifted = (s[0] ** 2 + lam) / least
    # rounding of G moves the solution by this much of itself, rounding of F'Z by as much of the targets
    return Ridge(W, roundings(n, d) * eps * lifted * (1 + norm(T) / (s[0] * norm(W))))


def ridges(case: Problem) -> Iterator[Found]:
    """(G + lam)^-1 C by every route, for ridges far below rounding, too."""
    X, s, _, rng = case
    n, d = X.shape
    Z = X @ rng.standard_normal((d, 2)) + 0.01 * rng.standard_normal((n, 2))
    G, C = X.T @ X, X.T @ Z
    for ridge in RIDGES:
        if _near_the_cutoff(s, ridge):
            continue
        reference = ridge_reference(X, Z, s, ridge)
        solvers: dict[str, Callable[[], np.ndarray]] = {
            "ridge_solve": lambda lam=ridge: ridge_solve(G, C, lam)[0],
            "output layer, eigen": lambda lam=ridge: RidgeFactors(G, C, 1.0).at(lam).coefficients(),
            "output layer, Cholesky": lambda lam=ridge: RidgeFactors(G, C, 1.0, nested=True).at(lam).coefficients(),
            "solve_on_support": lambda lam=ridge: solve_on_support(G, C, np.ones_like(C), lam),
            "encoder, primal": lambda lam=ridge: PrimalGram(G).pinv_rows(C.T, lam * d / np.trace(G)),
        }
        for name, solver in solvers.items():
            yield Found(name, norm(solver() - reference.W) / norm(reference.W), reference.bound)
        if ridge >= 1e-11:
            wide, E = np.ascontiguousarray(X.T), exact(X)
            rows = solve(plus(E.T @ E, ridge), E.T).T  # (XX' + lam)^-1 X, of d rows and n columns
            W = DualGram(wide).pinv_rows(wide, ridge * n / np.sum(wide**2))
            # directions under the cut-off are dropped, whatever the ridge
            least = max(s[-1], rank_cutoff(d, gram=True) * s[0]) * (s[-1] ** 2 + ridge)
            yield Found("encoder, dual", norm(W - rows), roundings(n, d) * EPS * s[0] ** 2 / least * d**0.5)


def _near_the_cutoff(s: np.ndarray, lam: float) -> bool:
    """Whether rounding decides on which side of the rank cut-off a direction is."""
    return bool(np.min(np.abs(np.log10((s**2 + lam) / (len(s) * EPS)))) < 0.3)


def output_layer(case: Problem) -> Iterator[Found]:
    """Outputs of a solved head: columns of any scale and far from zero, standardised inside the sums."""
    X, _, _, rng = case
    n, d = X.shape
    F = (X / X.std(axis=0) + 1e3 * rng.standard_normal(d)) * 10.0 ** rng.integers(-6, 7, d)
    Z = X / X.std(axis=0) @ rng.standard_normal((d, 2)) + 5.0
    moments = Moments(NUMPY)
    for start in range(0, n, 9):
        moments.add(F[start : start + 9], Z[start : start + 9])
    E, T = exact(F), exact(Z)
    mean, zbar = E.sum(axis=0) / n, T.sum(axis=0) / n
    spread = np.array([mpmath.sqrt(v) for v in ((E - mean) ** 2).sum(axis=0) / n], dtype=object)
    S = (E - mean) / spread
    s = np.linalg.svd(S.astype(float), compute_uv=False)
    far = mean / spread  # the intercept takes the means off again: to eps of them
    for ridge in (1e-6, 1e-3, 1.0):
        lam = ridge * n
        W = solve(plus(S.T @ S, lam), S.T @ (T - zbar))
        nothing = np.zeros((d, T.shape[1])), np.zeros(T.shape[1])
        head = LinearHead(None, Output(*nothing, ridge, "", None, None, {}, moments=moments, solved=False))
        head.ready()
        outputs = E @ exact(head.output.coef) + exact(head.output.intercept)
        error = norm(outputs - (S @ W + zbar))
        lifted = (s[0] ** 2 + lam) / (s[-1] ** 2 + lam)
        size = lifted * (s[0] * norm(W) + norm(T - zbar)) + norm(far[:, None] * W) * n**0.5
        yield Found("head, outputs", error, roundings(n, d) * EPS * size)


def decoders(case: Problem) -> Iterator[Found]:
    """Decoders without and with a bias, and the reconstruction error, from sums of features far from zero."""
    X, s, _, rng = case
    n, d = X.shape
    target = X @ rng.standard_normal((d, 3)) + 0.01 * rng.standard_normal((n, 3))
    for ridge in (0.0, 1e-12, 1e-8, 1e-3):
        moments = Moments(NUMPY, shifted=False)
        moments.add(X, target)
        lam = ridge * float(np.trace(X.T @ X)) / d
        if _near_the_cutoff(s, lam):
            continue
        reference = ridge_reference(X, target, s, lam)
        W, left, _ = _decoder(moments, ridge, 0.0)
        yield Found("decoder", norm(W - reference.W) / norm(reference.W), reference.bound)
        E, T = exact(X), exact(target)
        total = norm(T) ** 2
        true_left = norm(E @ reference.W - T) ** 2 / total
        size = roundings(n, d) * EPS * (1 + (s[0] * norm(reference.W)) ** 2 / total)
        slack = (s[0] * reference.bound * norm(reference.W)) ** 2 / total  # a minimum: the solution's error squared
        yield Found("reconstruction error", abs(left - true_left), size + slack)
        if ridge == 1e-8:
            yield from _narrowest_widths(moments, E, T, ridge, lam, roundings(n, d) * EPS * (s[0] ** 2 + lam) / lam)
    for ridge in (1e-8, 1e-3):
        H = X + 1e3 * rng.standard_normal(d)
        moments = Moments(NUMPY)
        moments.add(H[: n // 2], target[: n // 2])
        moments.add(H[n // 2 :], target[n // 2 :])
        E, T = exact(H), exact(target)
        mean, zbar = E.sum(axis=0) / n, T.sum(axis=0) / n
        S = E - mean
        squares = np.linalg.svd(S.astype(float), compute_uv=False) ** 2
        lam = ridge * float(squares.sum()) / d
        W = solve(plus(S.T @ S, lam), S.T @ (T - zbar))
        W_d, b = decoder_with_bias(moments, ridge, "float64")
        error = norm(E @ exact(W_d) + exact(b) - (S @ W + zbar))
        lifted = (squares[0] + lam) / (squares[-1] + lam)
        away = norm(mean) * norm(W) * n**0.5
        size = lifted * (squares[0] ** 0.5 * norm(W) + norm(T - zbar)) + away
        yield Found("decoder with bias, outputs", error, roundings(n, d) * EPS * size)


def _narrowest_widths(
    moments: Moments, E: np.ndarray, T: np.ndarray, ridge: float, lam: float, bound: float
) -> Iterator[Found]:
    """The width that `width=("error", target)` finds, for targets midway between what two widths reach."""
    total, objective = (T * T).sum(), [mpmath.mpf(1)]
    for p in range(1, E.shape[1] + 1):
        H = E[:, :p]
        C = H.T @ T
        objective.append(1 - (C * solve(plus(H.T @ H, lam), C)).sum() / total)
    for p in range(1, len(objective)):
        midway, apart = (objective[p - 1] + objective[p]) / 2, float(objective[p - 1] - objective[p]) / 2
        if apart > bound:
            yield Found("narrowest width", abs(_narrowest(moments, ridge, float(midway)) - p), 0.5)


def sparse(case: Problem) -> Iterator[Found]:
    """The loss `lasso_solve` reaches, against the exact minimum, of what it falls by."""
    X, s, _, rng = case
    n, d = X.shape
    z = X @ rng.standard_normal((d, 1)) + 0.05 * rng.standard_normal((n, 1))
    G, C = X.T @ X, X.T @ z
    for share in (0.5, 0.1, 0.01):
        ridge = 1e-6 * float(np.trace(G)) / d
        l1 = share * float(np.abs(C).max())
        W = lasso_solve(G, C, np.full((1, 1), l1), ridge)
        best = _exact_lasso(exact(G), exact(C)[:, 0], mpmath.mpf(l1), mpmath.mpf(ridge))
        loss = [_lasso_loss(exact(G), exact(C)[:, 0], l1, ridge, w) for w in (exact(W)[:, 0], best)]
        lifted = (s[0] ** 2 + ridge) / (s[-1] ** 2 + ridge)
        yield Found("lasso_solve, loss", float((loss[0] - loss[1]) / -loss[1]), LASSO_TOLERANCE * lifted**0.5)


def _lasso_loss(G: np.ndarray, C: np.ndarray, l1: float, ridge: float, w: np.ndarray) -> mpmath.mpf:
    """||H w - x||^2 / 2 - ||x||^2 / 2 + l1 |w|_1 + ridge ||w||^2 / 2."""
    return w @ (G @ w) / 2 - w @ C + mpmath.mpf(l1) * sum(abs(x) for x in w) + mpmath.mpf(ridge) * (w @ w) / 2


def _exact_lasso(G: np.ndarray, C: np.ndarray, l1: mpmath.mpf, ridge: mpmath.mpf) -> np.ndarray:
    """The minimum, by walking down from the penalty that leaves nothing: weights come and go one at a time (LARS)."""
    A, d = plus(G, float(ridge)), len(G)
    w, at = exact(np.zeros(d)), int(np.argmax(np.abs(C).astype(float)))
    active, penalty = [at], abs(C[at])
    for _ in range(50 * d):
        slack = C - A @ w
        signs = np.array([mpmath.sign(slack[j]) for j in active], dtype=object)
        step = solve(A[np.ix_(active, active)], signs[:, None])[:, 0]
        falls = A[:, active] @ step
        moves: list[tuple[mpmath.mpf, int]] = [(penalty - l1, -1)]
        for j in range(d):
            if j in active:
                t = -w[j] / step[active.index(j)]
                moves.append((t, j))
                continue
            for sign in (1, -1):
                rate = 1 - sign * falls[j]
                if rate != 0:
                    moves.append(((penalty - sign * slack[j]) / rate, j))
        tiny = mpmath.mpf(10) ** (-DIGITS + 15) * penalty
        t, j = min((move for move in moves if move[0] > tiny or move[1] == -1), key=lambda move: move[0])
        w[active] = w[active] + t * step
        penalty -= t
        if j == -1:
            return w
        if j in active:
            w[j] = mpmath.mpf(0)
            active.remove(j)
        else:
            active.append(j)
    raise Broken("the reference for the lasso did not end")


# ------------------------------------------------------------------------------------------------- leave-one-out


def leave_one_outs(case: Problem) -> Iterator[Found]:
    """Leave-one-out by both factors and at every width, against solving again without the row."""
    X, _, _, rng = case
    n, d = X.shape
    if n > 12:
        return  # solved again for every row, width and ridge
    F = X / X.std(axis=0)
    Z = F @ rng.standard_normal((d, 2)) + 0.1 * rng.standard_normal((n, 2))
    w = rng.uniform(0.5, 2.0, n)
    F = F - w @ F / w.sum()
    zbar = w @ Z / w.sum()
    unit = np.minimum(w, 1.0)
    weight = float(w.sum())
    G, C = F.T @ (w[:, None] * F), F.T @ (w[:, None] * (Z - zbar))
    s = np.sqrt(np.maximum(np.linalg.eigvalsh(G)[::-1], 0.0))
    for ridge in (1e-6, 1e-2):
        lam = ridge * weight
        references = [_without(F, Z, w, unit, i, lam, p) for p in range(1, d + 1) for i in range(n)]
        by_width = np.array(references, dtype=object).reshape(d, n, 2)
        lifted = (s[0] ** 2 + lam) / (max(s[-1] ** 2, 0.0) + lam)
        whole = norm(exact(Z - zbar))
        h = np.einsum("ij,ji->i", F, np.linalg.solve(G + lam * np.eye(d), F.T)) + 1 / weight
        left = 1 - unit * h
        c = roundings(n, d) * EPS * lifted * whole
        for nested, name in ((False, "eigen"), (True, "Cholesky")):
            factors = RidgeFactors(G, C, weight, nested=nested)
            [scored] = leave_one_out(factors, [ridge], zbar, lambda: iter([(F, Z, w, unit, w)]))
            error = np.abs((exact(scored.outputs) - by_width[-1]).astype(float)).max(axis=1)
            ratio = error * left**2
            yield Found(f"leave-one-out, {name}", float(ratio.max()), c)
        factor = RidgeFactors(G, C, weight, nested=True).at(ridge)
        q = factor.whiten(F)
        squares = (((exact(Z) - by_width) ** 2).sum(axis=2)).astype(float).T
        for make in (_by_outputs, _by_products):
            found = make(factor.c, 1)(q, Z - zbar, unit[:, None], 1 / weight)
            worst = float((np.abs(found - squares) * left[:, None] ** 3).max())
            yield Found(f"every width,{make.__name__.replace('_', ' ')}", worst, c * whole)


def _without(F: np.ndarray, Z: np.ndarray, w: np.ndarray, unit: np.ndarray, i: int, lam: float, p: int) -> np.ndarray:
    """The output for row i of the first p features, solved again with its unit of weight taken out."""
    E, T, weight = exact(F[:, :p]), exact(Z), exact(w)
    weight[i] -= mpmath.mpf(float(unit[i]))
    total = weight.sum()
    mean, zbar = weight @ E / total, weight @ T / total
    S = E - mean
    W = solve(plus(S.T @ (weight[:, None] * S), lam), S.T @ (weight[:, None] * (T - zbar)))
    return (E[i] - mean) @ W + zbar


# ------------------------------------------------------------------------------------------------- sums


def sums(case: Problem) -> Iterator[Found]:
    """Centred moments after adding, merging, moving the shift and taking out: to rounding of the most ever held."""
    X, _, condition, rng = case
    n, d = X.shape
    steps = 0
    A = X / X.std(axis=0) + min(condition, 1e12) * rng.standard_normal(d)  # a mean far beyond the spread
    B = rng.standard_normal((n, 2)) - min(condition, 1e12)
    w = rng.uniform(0.1, 3.0, n)
    gone = A[:4] + 1e3 * rng.standard_normal((4, d))  # comes and goes
    moments, other = Moments(NUMPY), Moments(NUMPY)
    half = n // 2
    for start in range(0, half, 3):
        part = slice(start, min(start + 3, half))
        moments.add(A[part], B[part], w[part])
        steps += 1
    moments.add(gone, B[:4])
    other.add(A[half:], B[half:], w[half:])
    moments.merge(other)
    moments.remove(gone, B[:4])
    steps += 3
    E, T, weight = exact(A), exact(B), exact(w)
    total = weight.sum()
    mean, zbar = weight @ E / total, weight @ T / total
    S, R = E - mean, T - zbar
    held, held_b = np.sqrt(moments.largest), np.sqrt(moments.largest_b)
    c = roundings(n, steps) * EPS
    for name, value, reference, size in (
        ("centred Gram", moments.gram(centred=True), S.T @ (weight[:, None] * S), np.outer(held, held)),
        ("centred cross", moments.cross(centred=True), S.T @ (weight[:, None] * R), np.outer(held, held_b)),
        ("variance", moments.variance_a() * moments.weight, (weight[:, None] * S**2).sum(axis=0), held**2),
    ):
        error = np.abs((exact(value) - reference).astype(float)) / size
        yield Found(f"sums, {name}", float(error.max()), c)
    # a mean is a number beside the shift: to eps of itself, and of what the sum held
    error = np.abs((exact(moments.mean_a) - mean).astype(float))
    size = np.abs(A).max(axis=0) + held * float(total) ** -0.5
    yield Found("sums, mean", float((error / size).max()), c)


def singles(case: Problem) -> Iterator[Found]:
    """float32 products: the same with their eps, for ridges that allow them, and the rank they can tell."""
    X, s, _, rng = case
    n, d = X.shape
    F = X.astype(np.float32)
    Z = (X @ rng.standard_normal((d, 2)) + 0.01 * rng.standard_normal((n, 2))).astype(np.float32)
    moments = Moments(NUMPY, shifted=False, product="float32")
    moments.add(F, Z)
    for ridge in (FLOAT32_RIDGE, 1e-3, 0.1):
        lam = ridge * float(np.trace(moments.gram())) / d
        reference = ridge_reference(F, Z, s, lam, EPS32)
        W, _ = ridge_solve(moments.gram(), moments.cross(), lam)
        yield Found("float32 products, ridge", norm(W - reference.W) / norm(reference.W), reference.bound)
    found = PrimalGram(moments.gram(), float(n), "float32")
    cut = rank_cutoff(d, gram=True, product="float32")
    exact_s = np.sqrt(spectrum(exact(F))[0].astype(float))
    error = float(np.max(np.abs(found.s**2 - exact_s[: found.rank] ** 2)))
    yield Found("float32 products, squared singular values", error, roundings(n, d) * EPS32)
    if not np.sum(exact_s > 1.5 * cut) <= found.rank <= np.sum(exact_s > cut / 1.5):
        yield Found(f"float32 products: rank {found.rank} of {exact_s.tolist()} at cut-off {cut:.3g}", np.inf, 0.0)


CHECKS = (pseudoinverses, layers, ridges, output_layer, decoders, sparse, leave_one_outs, sums, singles)
