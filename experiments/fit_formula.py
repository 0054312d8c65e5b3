"""Refit the coefficients of eq (31) on the eleven (rank, N, best width) triples of the paper's Tables I and II.

    python experiments/fit_formula.py

prints the numbers that stand in `pilae.structure.FORMULA`.
"""

import numpy as np

TRIPLES = {  # rank of the data (Table I), rows (Table I), best width by brute force (Table II)
    "Bupa": (6, 250, 161),
    "Segment": (19, 1700, 1352),
    "Mfeat": (646, 1400, 1265),
    "Prior": (621, 2500, 1979),
    "Har 1": (540, 3000, 1557),
    "Advertisement": (727, 3279, 2556),
    "Gina_agnostic": (970, 3468, 2197),
    "Spambase": (57, 4601, 586),
    "Isolet": (617, 7797, 4062),
    "Har 2": (540, 7352, 4657),
    "Sylva": (204, 10000, 1322),
}


def coefficients(triples: dict[str, tuple[int, int, int]] = TRIPLES) -> np.ndarray:
    """theta of P(r, N) = theta_0 + theta_1 r + theta_2 N + theta_3 r^2 + theta_4 N^2, by least squares."""
    r, n, p = np.array(list(triples.values()), dtype=float).T
    A = np.stack([np.ones_like(r), r, n, r**2, n**2], axis=1)
    scale = np.abs(A).max(axis=0)
    return np.linalg.lstsq(A / scale, p, rcond=None)[0] / scale


if __name__ == "__main__":
    print([float(f"{theta:.6g}") for theta in coefficients()])
