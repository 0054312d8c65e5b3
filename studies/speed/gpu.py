"""The paper's network, fits with no argument and streamed rows on a GPU.

    PILAE_DATA=folder python -m studies.speed.gpu [file for the results]

Needs PyTorch with CUDA. Times are the best of several fits after a first one; a fit ends when its results are on the
card. Rates are measured in the same run: products of 8,000 x 8,000 matrices, copies from pinned memory.
"""

import sys
from pathlib import Path

import numpy as np

from pilae import SHLN, PILAEClassifier, PILAutoencoder, scan_blocks
from pilae._data.stream import Stream
from studies.data import images
from studies.measure import describe, seconds_of, times_of
from studies.store import results_of, write


def network(width: list[int], neurons: int, device: str | None = None) -> PILAEClassifier:
    """Layers of these widths under an SHLN, with every ridge given."""
    layer, head = PILAutoencoder(encoder_ridge=1e-3), SHLN(neurons, encoder_ridge=1e-3)
    return PILAEClassifier(width=width, layer=layer, head=head, ridge=1e-3, device=device, random_state=0)


def best(function, times: int) -> float:
    import torch

    return min(times_of(function, times + 1, torch.cuda.synchronize)[1:])


def rates() -> dict:
    """TFLOP/s of products, GB/s of copies to the card."""
    import torch

    found = {}
    for kind in (torch.float32, torch.float64):
        A = torch.rand((8000, 8000), dtype=kind, device="cuda")
        found[f"{kind} product, TFLOP/s"] = 2 * 8000**3 / best(lambda A=A: A @ A, 5) / 1e12
    card = torch.empty(2**28, dtype=torch.float32, device="cuda")
    for name, host in (("pinned", torch.empty(2**28).pin_memory()), ("pageable", torch.empty(2**28).fill_(1.0))):
        found[f"{name} copy, GB/s"] = 2**30 / best(lambda host=host: card.copy_(host, non_blocking=True), 3) / 1e9
    return found


def paper_network(width: int, times: int = 5) -> dict:
    """The paper's network on MNIST, with the rows on the card and with the rows in NumPy."""
    import torch

    X, y, X_test, y_test = images("mnist")
    there, there_test = torch.asarray(X, device="cuda"), torch.asarray(X_test, device="cuda")
    result = {}
    for name, rows, test, device in (("on the card", there, there_test, None), ("from NumPy", X, X_test, "cuda")):
        model = network([705, 634], width, device)
        seconds = best(lambda model=model, rows=rows: model.fit(rows, y), times)
        result[name] = {"milliseconds": 1e3 * seconds, "test_accuracy": model.score(test, y_test)}
    return result


def searched(name: str) -> dict:
    """No argument at all, rows in NumPy: the second of two fits."""
    import torch

    X, y, X_test, y_test = images(name)
    model = PILAEClassifier(device="cuda", random_state=0)
    seconds = best(lambda: model.fit(X, y), 1)
    torch.cuda.empty_cache()
    accuracy = model.score(X_test, y_test)
    return {"seconds": seconds, "test_accuracy": accuracy, "loo": model.loo_score_, "width": model.head_width_}


def agreement() -> dict:
    """Predictions of the GPU beside those of NumPy, in float64."""
    import torch

    X, y, X_test, _ = images("mnist", "float64")
    X, y, X_test = X[:10_000], y[:10_000], X_test[:2000]
    here = network([300, 200], 1000).fit(X, y).decision_function(X_test)
    there = network([300, 200], 1000).fit(torch.asarray(X, device="cuda"), y)
    found = there.decision_function(torch.asarray(X_test, device="cuda")).cpu().numpy()
    return {"largest relative difference": float(np.abs(found - here).max() / np.abs(here).max())}


def streamed(copy_rate: float, repeats: int = 10) -> dict:
    """10^7 rows of 100 float32 columns (4 GB of host memory), read `repeats` times in every pass."""
    import torch

    rng = np.random.default_rng(0)
    block = rng.standard_normal((10**6, 100), dtype=np.float32)
    X = np.concatenate([block] * 10)
    y = np.tile((block[:, 0] + block[:, 1] > 0).astype(np.int64), 10)

    def blocks():
        for _ in range(repeats):
            for start in range(0, len(X), 10**6):
                yield X[start : start + 10**6], y[start : start + 10**6]

    head = SHLN(256, encoder_ridge=1.0)
    model = PILAEClassifier(depth=0, head=head, ridge=1e-3, device="cuda", random_state=0)
    size, rates = repeats * X.nbytes / 1e9, {}
    total = Stream.total

    def timed(self, make, add, label, width=0):  # the passes that copy all rows to the card
        seconds, result = seconds_of(lambda: total(self, make, add, label, width), torch.cuda.synchronize)
        rates[label.split(",")[0]] = size / seconds
        return result

    Stream.total = timed
    seconds, _ = seconds_of(lambda: model.fit(scan_blocks(blocks)))
    Stream.total = total
    return {
        "rows": repeats * len(X),
        "seconds": seconds,
        "passes": model.n_passes_,
        "GB/s by pass": rates,
        "share of the pinned copy rate by pass": {label: rate / copy_rate for label, rate in rates.items()},
    }


def main() -> None:
    import torch

    results = {
        "command": "python -m studies.speed.gpu",
        "machine": describe() | {"gpu": torch.cuda.get_device_name(0), "torch": torch.__version__},
    }
    results["rates"] = rates()
    print(results, flush=True)
    results["agreement"] = agreement()
    print(results["agreement"], flush=True)
    for width in (4000, 10_000):
        results[f"paper's network, head {width}"] = paper_network(width)
        print(results[f"paper's network, head {width}"], flush=True)
    for name in ("mnist", "fashion_mnist"):
        results[f"no argument, {name}"] = searched(name)
        print(results[f"no argument, {name}"], flush=True)
    if "--no-stream" not in sys.argv:
        results["streamed"] = streamed(results["rates"]["pinned copy, GB/s"])
        print(results["streamed"], flush=True)
    names = [name for name in sys.argv[1:] if not name.startswith("--")]
    write(Path(names[0]) if names else results_of("speed", "gpu"), results)


if __name__ == "__main__":
    main()
