"""How much the seed decides: `PILAEClassifier(random_state=seed)` for ten seeds on the tables of `tabular`.

    PILAE_DATA=folder python -m studies.tables.seeds [set ...]

The first fold of each table, or its official split. A spread of one point, or of two standard errors of an accuracy on
so many test rows, is what chance alone may give. Writes studies/tables/results/seeds.json, one table after another, so
that it can be stopped and continued: what is there is measured again only if its set is named.
"""

import sys
import warnings

import numpy as np

from pilae import PILAEClassifier
from studies.measure import describe
from studies.store import read, results_of, write
from studies.tables.tabular import BUILT_IN, FILES, splits

SEEDS = 10


def measured(name: str) -> dict:
    """Test accuracies and leave-one-out of all seeds."""
    X, y, X_test, y_test = splits(name)[0]
    accuracy, loo = [], []
    for seed in range(SEEDS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rows that do not keep a promise are said; here they are measured
            model = PILAEClassifier(random_state=seed).fit(X, y)
        accuracy.append(float(model.score(X_test, y_test)))
        loo.append(float(model.loo_score_))
    mean = float(np.mean(accuracy))
    error = (mean * (1 - mean) / len(y_test)) ** 0.5
    return {"test_rows": len(y_test), "accuracy": accuracy, "loo": loo, "standard_error": error}


def main() -> None:
    path = results_of("tables", "seeds")
    results = {"sets": {}} | read(path)
    results |= {"command": "python -m studies.tables.seeds", "machine": describe()}
    for name in sys.argv[1:] or [*BUILT_IN, *FILES]:
        if name in sys.argv[1:] or name not in results["sets"]:
            results["sets"][name] = found = measured(name) | {"commit": results["machine"]["commit"]}
            spread = np.std(found["accuracy"], ddof=1)
            print(f"{name:<22}{np.mean(found['accuracy']):.4f} ± {spread:.4f}", flush=True)
            write(path, results)


if __name__ == "__main__":
    main()
