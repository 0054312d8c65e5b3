"""Refit the coefficients of eq (31) on the eleven (rank, N, best width) triples of the paper's Tables I and II.

    python -m studies.paper.fit_formula

prints the numbers that stand in `pilae._network.structure.FORMULA`, and beside them the fits by category that the paper
proposes: data sets with few features and those with many, apart. Four and seven sets are few, so a category gets
the linear terms alone, and the table shows what each fit predicts for a set that it has not seen.
"""

import numpy as np

from studies.paper.paper import TABLES

TRIPLES = {row.name: (row.rank, row.rows, row.best) for row in TABLES}
"""Rank and rows of the data (Table I), best width by brute force (Table II)."""

FEW_FEATURES = 250
"""A category is the sets of rank below this, or the others."""


def terms(r: np.ndarray, n: np.ndarray, linear: bool) -> np.ndarray:
    one = np.ones_like(r)
    return np.stack([one, r, n] if linear else [one, r, n, r**2, n**2], axis=1)


def coefficients(triples: dict[str, tuple[int, int, int]] = TRIPLES, *, linear: bool = False) -> np.ndarray:
    """theta of P(r, N) = theta_0 + theta_1 r + theta_2 N + theta_3 r^2 + theta_4 N^2, by least squares.

    With `linear` the two squares are left out.
    """
    r, n, p = np.array(list(triples.values()), dtype=float).T
    A = terms(r, n, linear)
    scale = np.abs(A).max(axis=0)
    return np.linalg.lstsq(A / scale, p, rcond=None)[0] / scale


def category(name: str) -> dict[str, tuple[int, int, int]]:
    """The sets of the same category."""
    few = TRIPLES[name][0] < FEW_FEATURES
    return {k: v for k, v in TRIPLES.items() if (v[0] < FEW_FEATURES) == few}


def predicted(name: str, triples: dict[str, tuple[int, int, int]], *, linear: bool = False) -> float:
    """Width for a set, by a fit on the other ones of `triples`."""
    theta = coefficients({k: v for k, v in triples.items() if k != name}, linear=linear)
    r, n, _ = np.array([TRIPLES[name]], dtype=float).T
    return float((terms(r, n, linear) @ theta)[0])


def main() -> None:
    print("all sets:", [float(f"{theta:.6g}") for theta in coefficients()])
    for words, name in (("few features", "Bupa"), ("many features", "Mfeat")):
        print(f"{words}, linear terms:", [float(f"{theta:.6g}") for theta in coefficients(category(name), linear=True)])
    print(f"\n{'each set left out':<20}{'best':>8}{'all sets':>10}{'category':>10}")
    for name, (_, _, best) in TRIPLES.items():
        by_category = predicted(name, category(name), linear=True)
        print(f"{name:<20}{best:>8}{predicted(name, TRIPLES):>10.0f}{by_category:>10.0f}")


if __name__ == "__main__":
    main()
