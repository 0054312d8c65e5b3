"""`PILAEImageClassifier` without an argument: accuracy on the official test images.

    python -m studies.images.angles [set ...]         # two cores
    python -m studies.images.angles --cuda [set ...]  # one GPU

Sets: mnist, fashion_mnist, svhn_gray, and cifar10 where its npz file is in PILAE_DATA. Each case is a process of its
own; writes studies/images/results/angles.json. Everything is chosen on training images; test images are scored once.
"""

import sys
from functools import partial

import numpy as np

from pilae import PILAEImageClassifier
from studies.data import from_folder
from studies.images.patches import SETS
from studies.measure import clock, on_gpu, peak_megabytes
from studies.store import run_cases

FOUND = ("patch", "pool", "pooling", "filters", "encoder_ridge", "contrast", "threshold", "mirror", "shift", "ridge")


def measure(name: str, cuda: bool) -> dict:
    X, y, X_test, y_test = from_folder(name)
    if cuda:
        X, X_test = on_gpu(X, X_test)
    start = clock(cuda)
    model = PILAEImageClassifier(random_state=0).fit(X, y)
    fitted = clock(cuda)
    predicted = model.predict(X_test)
    predicted = predicted.cpu().numpy() if hasattr(predicted, "cpu") else predicted
    end = clock(cuda)
    result = {
        "images": list(X.shape),
        "test_accuracy": float(np.mean(predicted == y_test)),
        "leave_one_out": model.loo_score_,
        "seconds": fitted - start,
        "seconds_to_predict": end - fitted,
        "test_images": len(y_test),
        "anchors": len(model.anchors_),
        "peak_megabytes": peak_megabytes(),
        "structure": {key: getattr(model, f"{key}_") for key in FOUND},
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
