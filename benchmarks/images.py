"""Image features by patch autoencoders, then an output layer: accuracy on the official test images.

    python -m benchmarks.images [set ...]           # two processor cores: everything automatic, a linear output layer
    python -m benchmarks.images --cuda [set ...]    # one GPU: more features, and a hidden layer of 30,000 neurons

Sets: mnist, fashion_mnist, svhn_gray, and cifar10 where its npz file is in PILAE_DATA. Each case is a process of its
own; writes benchmarks/results/images.json. Everything is chosen on training images; the test images are scored once.
"""

import json
import subprocess
import sys
import time

import numpy as np

from benchmarks.machine import RESULTS, data_folder, describe, peak_megabytes
from pilae import ConvPILAE, PILAEClassifier

SETS = ("mnist", "fashion_mnist", "svhn_gray")

SMALL = {"depth": 0, "head": "ridge", "input_scaling": "none"}
LARGE = {
    "depth": 0,
    "head_width": 30_000,
    "head_activation": "relu2",
    "head_encoder_ridge": 10.0,
    "head_anchors": "rows",
    "direct_links": False,
    "input_scaling": "standard",
    "keep_statistics": False,
}
"""Found on five sixths of the training images, judged on the rest, with fewer neurons."""


def measure(name: str, cuda: bool) -> dict:
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as data:
        X, y, X_test, y_test = (data[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    if cuda:
        import torch

        X, X_test = (torch.from_numpy(images).to("cuda") for images in (X, X_test))
        torch.linalg.cholesky(torch.eye(8, device="cuda"))  # libraries are loaded before the clock starts

    def now() -> float:
        if cuda:
            torch.cuda.synchronize()
        return time.perf_counter()

    start = now()
    conv = ConvPILAE(max_features=12_800 if cuda else 6400, random_state=0).fit(X, y)
    found = now()
    features = conv.transform(X)
    encoded = now()
    model = PILAEClassifier(random_state=0, **(LARGE if cuda else SMALL)).fit(features, y)
    end = now()
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
        result["gpu"] = torch.cuda.get_device_name()
        result["gpu_gigabytes"] = torch.cuda.max_memory_allocated() / 1e9
    return result


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], sys.argv[3] == "cuda")))
        return
    arguments = sys.argv[1:]
    place = "cuda" if "--cuda" in arguments else "cpu"
    names = [name for name in arguments if name != "--cuda"] or SETS
    path = RESULTS / "images.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    machine = describe()
    for name in names:
        out = subprocess.run(
            [sys.executable, "-m", "benchmarks.images", "--one", name, place], capture_output=True, text=True
        )
        if out.returncode:
            sys.exit(f"{name}: {out.stderr.strip().splitlines()[-1]}")
        found = json.loads(out.stdout.strip().splitlines()[-1])
        results.setdefault(place, {})[name] = found | {"commit": machine["commit"]}
        results[f"{place}_machine"] = machine
        print(name, found, flush=True)
        path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
