"""Image features by patch autoencoders, then an output layer: accuracy on the official test images.

    python -m studies.images.patches [set ...]         # two cores: everything automatic, a linear output layer
    python -m studies.images.patches --cuda [set ...]  # one GPU: more features, and a hidden layer of 30,000 neurons

Sets: mnist, fashion_mnist, svhn_gray, and cifar10 where its npz file is in PILAE_DATA. Each case is a process of its
own; writes studies/images/results/patches.json. Everything is chosen on training images; test images are scored once.
"""

import sys
from functools import partial

import numpy as np

from pilae import SHLN, ConvPILAE, PILAEClassifier
from studies.data import from_folder
from studies.measure import clock, on_gpu, peak_megabytes
from studies.store import run_cases

SETS = ("mnist", "fashion_mnist", "svhn_gray", "cifar10")

SMALL = {"depth": 0, "head": "ridge", "input_scaling": "none"}
LARGE = {
    "depth": 0,
    "head": SHLN(30_000, encoder_ridge=10.0, anchors="rows", direct_links=False, activation="relu2"),
    "input_scaling": "standard",
    "keep_statistics": False,
}
"""Found on five sixths of the training images, judged on the rest, with fewer neurons."""


def measure(name: str, cuda: bool) -> dict:
    X, y, X_test, y_test = from_folder(name)
    if cuda:
        X, X_test = on_gpu(X, X_test)
    start = clock(cuda)
    conv = ConvPILAE(max_features=12_800 if cuda else 6400, random_state=0).fit(X, y)
    found = clock(cuda)
    features = conv.transform(X)
    encoded = clock(cuda)
    model = PILAEClassifier(random_state=0, **(LARGE if cuda else SMALL)).fit(features, y)
    end = clock(cuda)
    predicted = model.predict(conv.transform(X_test))
    predicted = predicted.cpu().numpy() if hasattr(predicted, "cpu") else predicted
    result = {
        "images": list(X.shape),
        "test_accuracy": float(np.mean(predicted == y_test)),
        "leave_one_out": model.loo_score_,
        "seconds": end - start,
        "seconds_by_part": {"structure": found - start, "features": encoded - found, "output": end - encoded},
        "features": int(features.shape[1]),
        "head": model.head_width_,
        "peak_megabytes": peak_megabytes(),
        "structure": {
            key: getattr(conv, f"{key}_")
            for key in ("patch", "pool", "filters", "encoder_ridge", "contrast", "mirror", "depth")
        },
    }
    if cuda:
        import torch

        result["gpu"] = torch.cuda.get_device_name()
        result["gpu_gigabytes"] = torch.cuda.max_memory_allocated() / 1e9
    return result


if __name__ == "__main__":
    cuda = "--cuda" in sys.argv
    place = "cuda" if cuda else "cpu"
    cases = {name: partial(measure, name, cuda) for name in SETS}
    run_cases(__spec__.name, cases, default=SETS[:3], key=place, machine=f"{place}_machine")
