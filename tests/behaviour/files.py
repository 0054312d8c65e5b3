"""Model files that an earlier pilae wrote, and what their models said: later code must load them and say the same.

A file is made once, by the code of its day, and stays: `--record` makes those that are missing and no others. They are
packed because much of them is repetition.

scikit-learn reads its own objects of earlier versions more often than those of later ones. So the heads that are its
estimators were written with the lowest version the library allows (1.6).
"""

from __future__ import annotations

import contextlib
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

import pilae
from pilae import (
    SHLN,
    ConvPILAE,
    PILAEClassifier,
    PILAEImageClassifier,
    PILAERegressor,
    PILAutoencoder,
    PILClassifier,
    PILRegressor,
    StackedPILAE,
    scan_blocks,
)

from .cases import (
    Answer,
    Case,
    diabetes,
    digits,
    each,
    found,
    houses,
    iris,
    labels,
    made,
    said,
    some,
    told,
    wine,
)

FOLDER = Path(__file__).parent / "files"

MAKERS: dict[str, Callable[[Path], None]] = {}
FILES: dict[str, Case] = {}


def file(ask: Callable[[Any], Answer], *, dtype: str = "float64", condition: float = 1e3) -> Callable:
    """List a function that writes a model file, and what its model is asked.

    A loaded model only multiplies and adds, so that the condition is about the length of its sums; where it goes on
    learning, it solves again.
    """

    def listed(make: Callable[[Path], None]) -> Callable[[Path], None]:
        def run(folder: Path) -> Answer:
            return ask(opened(name, folder))

        name = make.__name__
        MAKERS[name], FILES[name] = make, Case(name, run, dtype, condition)
        return make

    return listed


def stored(name: str) -> Path:
    return FOLDER / f"{name}.pilae.xz"


def opened(name: str, folder: Path) -> Any:
    """The model of a stored file, unpacked into `folder`."""
    path = folder / f"{name}.pilae"
    path.write_bytes(lzma.decompress(stored(name).read_bytes()))
    return pilae.load(path)


def make_missing(folder: Path) -> list[str]:
    """Write the files that are not there; their names."""
    missing = [name for name in MAKERS if not stored(name).exists()]
    FOLDER.mkdir(exist_ok=True)
    for name in missing:
        MAKERS[name](folder / name)
        stored(name).write_bytes(lzma.compress((folder / name).read_bytes()))
    return missing


def learns_on(model: Any) -> Answer:
    """What it says, and what it says after more rows: the sums are in the file."""
    X, y = iris()
    return each(loaded=told(model, X), learnt=said(model.partial_fit(X[::5], labels(y[::5])), some(X)))


@file(learns_on, condition=1e8)
def searched_classifier(path: Path) -> None:
    X, y = iris()
    PILAEClassifier(random_state=1).fit(X, labels(y)).save(path)


@file(lambda model: told(model, digits()[0]))
def deep_classifier(path: Path) -> None:
    X, y = digits()
    PILAEClassifier(width=[12, 8], skip=True, branches=2, ridge=1e-2, head=SHLN(width=20)).fit(X, y).save(
        path, statistics=False
    )


@file(lambda model: told(model, wine()[0]))
def softmax_head(path: Path) -> None:
    X, y = wine()
    PILAEClassifier(width=[6], head="softmax", input_scaling="asinh").fit(X, y).save(path)


@file(lambda model: told(model, iris()[0]))
def classifier_with_an_estimator(path: Path) -> None:
    X, y = iris()
    PILAEClassifier(width=[3], head=LogisticRegression(max_iter=500)).fit(X, y).save(path)


@file(lambda model: said(model, some(diabetes()[0]), methods=("predict",)))
def regressor_with_an_estimator(path: Path) -> None:
    X, y = diabetes()
    PILAERegressor(width=[6], head=Ridge(alpha=1.0)).fit(X, y).save(path)


@file(lambda model: told(model, made()[0]))
def multilabel(path: Path) -> None:
    X, Z = made()
    PILAEClassifier(width=[5], head="ridge", ridge=1e-2).fit(X, (Z > 0).astype(int)).save(path)


@file(lambda model: told(model, made()[0]) | {"narrow": model.predict_interval(some(made()[0]), coverage=0.5)})
def regressor_of_two_outputs(path: Path) -> None:
    X, Z = made()
    PILAERegressor(width=[5], ridge=1e-2, fit_rows=200, head=SHLN(width=15, direct_links=True)).fit(X, Z).save(path)


@file(lambda model: told(model, made()[0]))
def streamed_regressor(path: Path) -> None:
    X, Z = made()
    source = scan_blocks([(X[:170], Z[:170, 0]), (X[170:], Z[170:, 0])])
    PILAERegressor(width=[5], ridge=1e-2, head=SHLN(width=15)).fit(source).save(path)


@file(lambda model: told(model, made()[0]))
def classifier_of_dask(path: Path) -> None:
    import dask
    import dask.array as da

    X, Z = made()
    kinds = np.where(Z[:, 0] > 0, "high", "low")
    with dask.config.set(scheduler="synchronous"):
        rows, targets = da.from_array(X, chunks=(110, 6)), da.from_array(kinds, chunks=90)
        PILAEClassifier(width=[5], ridge=1e-2, head=SHLN(width=15)).fit(rows, targets).save(path)


@file(lambda model: told(model, iris()[0].astype(np.float32)), dtype="float32", condition=1e2)
def classifier_in_float32(path: Path) -> None:
    X, y = iris()
    PILAEClassifier(width=[3], ridge=1e-1, head=SHLN(width=15)).fit(X.astype(np.float32), y).save(path)


def coded(model: Any) -> Answer:
    X, _ = wine()
    back = model.inverse_transform(model.transform(some(X)))
    return told(model, X) | {"back": back, "scores": model.score_samples(some(X))}


@file(coded)
def stack(path: Path) -> None:
    StackedPILAE(width=[8, 5]).fit(wine()[0]).save(path)


@file(coded)
def autoencoder(path: Path) -> None:
    PILAutoencoder(width=8, decoder_l1=0.02).fit(wine()[0]).save(path)


@file(lambda model: told(model, digits()[0]))
def images(path: Path) -> None:
    X, _ = digits()
    given = {"filters": 8, "encoder_ridge": 1.0, "contrast": 0.1, "mirror": True}
    ConvPILAE(patch=[3, 5], pool=2, depth=1, **given).fit(X).save(path)


COMPARED = {
    "patch": 3,
    "pool": 2,
    "filters": 8,
    "encoder_ridge": 0.1,
    "contrast": 0.1,
    "threshold": 0.5,
    "mirror": False,
}


@file(lambda model: told(model, digits()[0]), condition=1e5)
def images_compared_with_all_and_copies(path: Path) -> None:
    X, y = digits()
    PILAEImageClassifier(**COMPARED, shift=1, ridge=0.01).fit(X[:40], y[:40]).save(path)


@file(lambda model: told(model, digits()[0]), condition=1e6)
def images_compared_with_some(path: Path) -> None:
    X, y = digits()
    PILAEImageClassifier(**COMPARED, anchors=15, ridge=0.01).fit(X, y).save(path)


def slides_on(model: Any) -> Answer:
    X, y = iris()
    return each(loaded=told(model, X), learnt=said(model.partial_fit(X[::5], y[::5]), some(X)))


@file(slides_on, condition=1e8)
def averaged_classifier(path: Path) -> None:
    X, y = iris()
    model = PILAEClassifier(random_state=0).fit(X[::2], y[::2])
    if sum(row["averaged"] for row in model.search_) != 2:
        raise RuntimeError("one network: choose other rows")
    model.save(path)


@file(lambda model: told(model, diabetes()[0]), condition=1e5)
def averaged_regressor(path: Path) -> None:
    X, y = diabetes()
    model = PILAERegressor(random_state=0).fit(X, y)
    if sum(row["averaged"] for row in model.search_) != 2:
        raise RuntimeError("one network: choose other rows")
    model.save(path, statistics=False)


@file(slides_on, condition=1e8)
def classifier_of_a_window(path: Path) -> None:
    X, y = iris()
    model = PILAEClassifier(width=[3], ridge=1e-1, head=SHLN(width=10), random_state=0)
    model.partial_fit(X[::2], y[::2], classes=np.unique(y), window=60).partial_fit(X[1::2], y[1::2]).save(path)


@file(slides_on, condition=1e8)
def classifier_of_fading_rows(path: Path) -> None:
    X, y = iris()
    model = PILAEClassifier(width=[3], ridge=1e-1, head=SHLN(width=10), random_state=0).fit(X[::2], y[::2])
    model.partial_fit(X[1::2], y[1::2], decay=0.99).save(path)


@file(slides_on, condition=1e8)
def classifier_of_sums_by_class(path: Path) -> None:
    X, y = iris()
    given = {"class_weight": "balanced", "keep_statistics": "classes"}
    PILAEClassifier(width=[3], ridge=1e-1, head=SHLN(width=10), **given).fit(X[20:], y[20:]).save(path)


@file(lambda model: told(model, made(40, 90)[0]), condition=1e5)
def more_columns_than_rows(path: Path) -> None:
    X, Z = made(40, 90)
    PILAERegressor(depth=0, head="ridge", ridge=1e-2).fit(X, Z[:, 0]).save(path)


@file(lambda model: told(model, wine()[0]))
def basic_classifier(path: Path) -> None:
    X, y = wine()
    PILClassifier().fit(X[::6], labels(y[::6])).save(path)


@file(lambda model: told(model, made()[0]))
def basic_regressor(path: Path) -> None:
    X, Z = made()
    PILRegressor().fit(X[:30], Z[:30]).save(path)


def tabled(model: Any) -> Answer:
    frame = houses().drop(columns=["price", "kind"])
    return {"predict": model.predict(some(frame))} | found(model["model"])


def from_the_command_line(path: Path, target: str) -> None:
    from pilae.cli import main

    houses().to_csv(path.with_suffix(".csv"), index=False)
    used = ["--columns", "c0,c1,c2,town,built", "--quiet"]
    with contextlib.redirect_stdout(io.StringIO()):
        status = main(["fit", str(path.with_suffix(".csv")), "--target", target, "-o", str(path), *used])
    if status:
        raise RuntimeError(f"pilae fit ended with {status}")


@file(tabled)
def table_with_prices(path: Path) -> None:
    from_the_command_line(path, "price")


@file(tabled)
def table_with_kinds(path: Path) -> None:
    from_the_command_line(path, "kind")
