"""How near fits and predictions are to the matrix products they consist of.

    PILAE_DATA=folder python -m studies.speed.products [case ...]

Every case has a process of its own. A figure is a ratio to matrix products timed in the same process right before and
after: "of its products" divides by the time the case's own products would take at the rate of a 4000 x 4000 product of
their dtype (operations are counted below; symmetric products count half), "GEMM" by one 4000 x 4000 float64 product.
Writes studies/speed/results/products.json.
"""

import statistics
import subprocess
import sys

import numpy as np
from sklearn.datasets import load_iris

from studies.data import images
from studies.measure import SIDE, beside_products, gemm_seconds, peak_megabytes, times_of
from studies.store import run_cases


def network(width: list[int], neurons: int, ridge: float | str):
    """Layers of these widths under an SHLN, the ridge of every encoder given."""
    from pilae import SHLN, PILAEClassifier, PILAutoencoder

    layer, head = PILAutoencoder(encoder_ridge=1e-3), SHLN(neurons, encoder_ridge=1e-3)
    return PILAEClassifier(width=width, layer=layer, head=head, ridge=ridge, random_state=0)


def shallow(neurons: int):
    """An SHLN on the input, its ridges given."""
    from pilae import SHLN, PILAEClassifier

    return PILAEClassifier(depth=0, head=SHLN(neurons, encoder_ridge=1.0), ridge=1e-3, random_state=0)


def automatic():
    from pilae import PILAEClassifier

    return PILAEClassifier(random_state=0)


def paper_products(n: int, scored: int, ridges: int) -> dict[str, float]:
    """Operations of the paper's network on n rows of 784 float32 columns: products by dtype.

    One pass for the input's Gram (float64); for each layer one for the decoder (encode, H'H, H'X) and one for the Gram
    of its output; one for the head. Features of a layer are kept between passes, so each is encoded once.
    """
    d, p1, p2, p = 784, 705, 634, 4000
    single = 2 * n * d * p1 + n * p1**2 + 2 * n * p1 * d  # decoder of layer 1
    single += 2 * n * d * p1 + n * p1**2  # its output and its Gram
    single += 2 * n * p1 * p2 + n * p2**2 + 2 * n * p2 * p1  # decoder of layer 2
    single += 2 * n * p1 * p2 + n * p2**2
    single += 2 * n * p2 * p + n * p**2 + 2 * n * p * 10  # head
    single += scored * (2 * d * p1 + 2 * p1 * p2 + 2 * p2 * p) + ridges * scored * p**2  # leave-one-out
    double = n * d**2 + ridges * p**3 / 3
    return {"float32": single, "float64": double}


def fitted(X, y, X_test, y_test, model, products: dict[str, float] | None = None) -> dict:
    fit = beside_products(lambda: model.fit(X, y), ("float32", "float64"))
    found = {
        "seconds": fit.seconds,
        "gemm": fit.gemm,
        "rows_per_second": len(X) / fit.seconds,
        "peak_megabytes": peak_megabytes(),
        "test_accuracy": None if X_test is None else float(fit.result.score(X_test, y_test)),
    }
    if products is not None:
        own = sum(operations / (2 * SIDE**3) * fit.products[kind] for kind, operations in products.items())
        found |= {"operations": products, "own_products_seconds": own, "of_its_products": fit.seconds / own}
    return found


def microseconds(function, repeats: int) -> float:
    """Median time of one call."""
    return 1e6 * statistics.median(times_of(function, repeats))


def paper(ridge: float | str = "auto") -> dict:
    """The paper's network on MNIST; a ridge that is found costs four."""
    products = paper_products(60_000, 2500, ridges=4 if ridge == "auto" else 1)
    return fitted(*images("mnist"), network([705, 634], 4000, ridge), products)


def many_rows() -> dict:
    """Depth 0 on 10^6 rows of 100 float32 columns, 256 neurons."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10**6, 100), dtype=np.float32)
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    n, d, p = *X.shape, 256
    products = {"float32": 2 * n * d * p + n * p**2 + 4 * n * p, "float64": n * d**2}
    return fitted(X, y, None, None, shallow(p), products)


def wide() -> dict:
    """2,000 rows of 5,000 float32 columns, depth 0, 500 neurons."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 5000), dtype=np.float32)
    y = (X[:, :50].sum(axis=1) > 0).astype(int)
    return fitted(X, y, None, None, shallow(500))


def iris() -> dict:
    X, y = load_iris(return_X_y=True)
    model, searching = network([3], 20, 1e-3), automatic()
    return {
        "fit with the structure given, milliseconds": microseconds(lambda: model.fit(X, y), 50) / 1e3,
        "fit with no argument, milliseconds": microseconds(lambda: searching.fit(X, y), 10) / 1e3,
        "predict one row, microseconds": microseconds(lambda: model.predict(X[:1]), 500),
    }


def prediction() -> dict:
    """The paper's network on MNIST: 10,000 rows at once, and one."""
    X, y, X_test, _ = images("mnist")
    model = network([705, 634], 4000, 1e-3).fit(X[:20_000], y[:20_000])
    shapes = ((784, 705), (705, 634), (634, 4000), (4000, 10))
    weights = [np.ones(shape, "float32") for shape in shapes]
    row = X_test[:1]

    def products() -> None:
        H = row
        for W in weights:
            H = H @ W

    one, own = microseconds(lambda: model.predict(row), 200), microseconds(products, 200)
    return rate(model, X_test, shapes) | {"one row, microseconds": one, "its products, microseconds": own}


def rate(model, X: np.ndarray, shapes: tuple[tuple[int, int], ...]) -> dict:
    """Of predictions, and their time beside that of products with matrices of these shapes."""
    before = gemm_seconds("float32")
    seconds = microseconds(lambda: model.predict(X), 5) / 1e6
    product = (before + gemm_seconds("float32")) / 2
    operations = sum(2 * len(X) * a * b for a, b in shapes)
    return {
        "rows_per_second": len(X) / seconds,
        "of_its_products": seconds / (operations / (2 * SIDE**3) * product),
    }


def many_predictions() -> dict:
    """Of 10^6 rows of 54 float32 columns: a layer of 48, 1,000 neurons; and of the network that a fit chooses."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10**6, 54), dtype=np.float32)
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    some = slice(0, 20_000)
    chosen = automatic().fit(X[some], y[some])
    return rate(network([48], 1000, 1e-3).fit(X[some], y[some]), X, ((54, 48), (48, 1000), (1000, 2))) | {
        "with no argument, rows a second": len(X) / min(times_of(lambda: chosen.predict(X), 3))
    }


def imports() -> dict:
    """Seconds until `PILAEClassifier` is there above those of `import sklearn.linear_model`, each the best of five new
    processes. (`import pilae` alone imports nothing.)"""

    def seconds(statement: str) -> float:
        return min(times_of(lambda: subprocess.run([sys.executable, "-c", statement], check=True), 5))

    base = seconds("import sklearn.linear_model")
    above = seconds("from pilae import PILAEClassifier") - base
    return {"sklearn.linear_model, seconds": base, "pilae above that, seconds": above}


CASES = {
    "MNIST, paper's network, ridges given": lambda: paper(ridge=1e-3),
    "MNIST, paper's network, ridge found": paper,
    "MNIST, no argument": lambda: fitted(*images("mnist"), automatic()),
    "10^6 rows x 100, 256 neurons": many_rows,
    "2,000 rows x 5,000, 500 neurons": wide,
    "iris": iris,
    "prediction, paper's network": prediction,
    "prediction, 10^6 rows x 54": many_predictions,
    "import": imports,
}


if __name__ == "__main__":
    run_cases(__spec__.name, CASES)
