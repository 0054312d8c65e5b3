"""Three hospitals, one model, no row leaves its site: python docs/examples/federated.py

One site fits a network on its rows and sends a fork: the network with no rows in it. Every site adds its own rows. The
forks come back, their sums are merged, and the output layer is the one of pooled training.
"""

import pickle

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from pilae import PILAEClassifier


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    sites = np.array_split(np.argsort(y, kind="stable"), 3)  # no site has seen more than five digits
    first = PILAEClassifier(random_state=0).fit(X[sites[0]], y[sites[0]])
    print(f"the first site alone, {len(sites[0])} rows:           {first.score(X_test, y_test):.4f}")
    letter = pickle.dumps(first.fork())  # what travels to the sites

    forks = [pickle.loads(letter).partial_fit(X[rows], y[rows]) for rows in sites]
    for k, (fork, rows) in enumerate(zip(forks, sites, strict=True)):
        known = len(np.unique(y[rows]))
        print(f"site {k + 1}, {known} of 10 digits, on its own:       {fork.score(X_test, y_test):.4f}")
    merged = forks[0].merge(*forks[1:])  # what comes back: sums over rows, never rows
    pooled = first.fork().partial_fit(X, y)
    difference = np.abs(merged.decision_function(X_test) - pooled.decision_function(X_test)).max()
    print(f"merged, one round:                       {merged.score(X_test, y_test):.4f}")
    print(f"the same network on all rows together:   {pooled.score(X_test, y_test):.4f}")
    print(f"largest difference of their outputs:     {difference:.0e}")


if __name__ == "__main__":
    main()
