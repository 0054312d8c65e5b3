"""Table III's networks on a GPU: python -m studies.paper.gpu [file for the results]

MNIST and Fashion-MNIST, rows already on the card for both. Needs PyTorch with CUDA; by hand, as CI has none.
"""

import json
import sys
from pathlib import Path
from statistics import mean, stdev

import torch

from pilae import SHLN, PILAEClassifier
from studies.data import Split, images
from studies.measure import describe, seconds_of, times_of
from studies.paper import bp
from studies.paper.setting import RUN
from studies.paper.table3 import HEADS, NEURONS, widths
from studies.store import write

SEEDS = (0, 1, 2)


def pilae(split: Split, head: SHLN) -> dict:
    """The best of three fits after a first one; the ridge is found by leave-one-out."""
    X, X_test = (torch.as_tensor(rows, device="cuda") for rows in (split.X, split.X_test))
    model = PILAEClassifier(width=widths(X.shape[1]), head=head, random_state=0)
    seconds = min(times_of(lambda: model.fit(X, split.y), 4, torch.cuda.synchronize)[1:])
    return {"accuracy": model.score(X_test, split.y_test), "seconds": seconds}


def back_propagation(split: Split, target: float) -> dict:
    """Greedy and end to end with an SHLN, three seeds."""
    X, y, X_test, y_test = bp.tensors(*split, device="cuda")
    bp.classifier(X[:5000], y[:5000], X_test, y_test, [705, 634], 0, bp.Saturation(1, 1.0, 1, updates=0))  # warm up
    hidden = widths(X.shape[1])
    found: dict = {"greedy": [], "softmax": [], "SHLN": []}
    for seed in SEEDS:
        stack = bp.greedy(X, y, hidden, seed)
        model = PILAEClassifier(depth=0, head=HEADS["SHLN"], input_scaling="none", random_state=0)
        F, F_test = stack(X), stack(X_test)
        seconds, _ = seconds_of(lambda model=model, F=F: model.fit(F, split.y), torch.cuda.synchronize)
        accuracy = model.score(F_test, split.y_test)
        found["greedy"].append({"accuracy": accuracy, "seconds": stack.seconds + seconds})
        for head, widths_ in (("softmax", hidden), ("SHLN", [*hidden, NEURONS])):
            curve = bp.classifier(X, y, X_test, y_test, widths_, seed, bp.IMAGES)
            found[head].append(curve.summary() | {"seconds_to_pilae": curve.seconds_to(target)})
    return found


def summary(runs: list[dict]) -> dict:
    return {
        "accuracy": mean(run["accuracy"] for run in runs),
        "deviation": stdev(run["accuracy"] for run in runs),
        "seconds": mean(run["seconds"] for run in runs),
        "runs": runs,
    }


def main() -> None:
    cells = {}
    for name in ("mnist", "fashion_mnist"):
        split = images(name)
        shln = pilae(split, HEADS["SHLN"])
        found = back_propagation(split, shln["accuracy"])
        cells[name] = {"PILAE, SHLN": shln} | {kind: summary(runs) for kind, runs in found.items()}
        print(name, json.dumps(cells[name], indent=1), flush=True)
    machine = describe() | {"torch": torch.__version__, "gpu": torch.cuda.get_device_name()}
    results = {"command": "python -m studies.paper.gpu", "machine": machine, "cells": cells}
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else RUN.results / "gpu.json", results)


if __name__ == "__main__":
    main()
