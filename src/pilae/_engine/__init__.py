"""Sums over rows and what is solved from them: moments, decompositions, leave-one-out. Knows no estimator."""
