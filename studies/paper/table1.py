"""Table I: rows, features and rank of the data. Ours are those of the whole set as it is published."""

from collections.abc import Callable

import numpy as np
from sklearn.impute import SimpleImputer

from pilae import PILAutoencoder, datasets
from studies.paper.paper import DATA, PARTS, TABLES


def measured(name: str) -> dict:
    data = datasets.load(name)
    X = data.X if data.X_test is None else np.concatenate([data.X, data.X_test])
    X = SimpleImputer(strategy="median", keep_empty_features=True).fit_transform(X.reshape(len(X), -1))
    layer = PILAutoencoder(width=1, input_scaling="none", dtype="float64").fit(X).layers_[0]
    return {
        "rows": len(X),
        "features": X.shape[1],
        "classes": len(np.unique(data.y)),
        "rank": layer.rank,
        "rank by SVD": int(np.linalg.matrix_rank(X.astype(float))),
        "source": data.source,
        "checksum": data.checksum,
    }


def cells() -> dict[str, Callable[[], dict]]:
    names = dict.fromkeys(DATA[row.name] for row in TABLES)
    names |= dict.fromkeys(PARTS[name] for name in names if name in PARTS)
    return {name: lambda name=name: measured(name) for name in names}
