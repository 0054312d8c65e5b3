"""Incremental PILAE against batch: the rows of MNIST in ten pieces.

The network is grown on the first piece. "head": later pieces only add to the output layer's sums, and the result is
that of one fit of the output layer on all rows. "all": the paper's incremental PILAE, decoders and tied encoders
follow. "batch": a fit on all rows.
"""

from collections.abc import Callable

import numpy as np

from pilae import SHLN, PILAEClassifier
from studies.data import images
from studies.measure import seconds_of
from studies.paper.setting import QUICK, ROWS
from studies.store import checksum

PIECES = 10
PARAMS = {"width": [705, 634], "head": SHLN(1000 if QUICK else 4000), "ridge": 1e-3, "random_state": 0}


def measured(update: str) -> dict:
    split = images("mnist", rows=ROWS)
    order = np.random.default_rng(0).permutation(len(split.X))
    X, y = split.X[order], split.y[order]
    pieces = np.array_split(np.arange(len(X)), PIECES)
    model, steps = PILAEClassifier(**PARAMS), []
    for k, piece in enumerate(pieces):
        if update == "batch":
            rows = np.concatenate(pieces[: k + 1])
            if 0 < k < PIECES - 1:
                continue
            seconds, _ = seconds_of(lambda rows=rows: model.fit(X[rows], y[rows]))
        elif k == 0:
            rows = piece
            seconds, _ = seconds_of(lambda rows=rows: model.fit(X[rows], y[rows]))
        else:
            rows = piece
            seconds, _ = seconds_of(lambda rows=rows: model.partial_fit(X[rows], y[rows], update=update))
        accuracy = model.score(split.X_test, split.y_test)  # solves the output layer from the sums
        steps.append({"rows": int(piece[-1]) + 1, "seconds": seconds, "accuracy": accuracy})
    return {"steps": steps, "checksum": checksum(X, split.X_test), "approximate": bool(model.approximate_)}


def cells() -> dict[str, Callable[[], dict]]:
    return {update: lambda update=update: measured(update) for update in ("batch", "head", "all")}
