"""pilae: deep networks without gradient descent.

Pseudoinverse learning for stacked autoencoders (PILAE) as scikit-learn estimators.
"""

import typing
from importlib import import_module

if typing.TYPE_CHECKING:
    from ._base.budget import time_budget
    from ._data.sources import scan_blocks, scan_csv, scan_parquet
    from ._estimators.autoencoder import PILAutoencoder
    from ._estimators.classifier import PILAEClassifier
    from ._estimators.image_classifier import PILAEImageClassifier
    from ._estimators.images import ConvPILAE
    from ._estimators.pil import PILClassifier, PILRegressor
    from ._estimators.regressor import PILAERegressor
    from ._estimators.shln import SHLN
    from ._estimators.stack import StackedPILAE
    from ._estimators.stacking import stacked
    from .save import ModelFileError, load

__version__ = "0.1.0"

_HOMES = {
    "SHLN": "_estimators.shln",
    "ConvPILAE": "_estimators.images",
    "ModelFileError": "save",
    "PILAEClassifier": "_estimators.classifier",
    "PILAEImageClassifier": "_estimators.image_classifier",
    "PILAERegressor": "_estimators.regressor",
    "PILAutoencoder": "_estimators.autoencoder",
    "PILClassifier": "_estimators.pil",
    "PILRegressor": "_estimators.pil",
    "StackedPILAE": "_estimators.stack",
    "load": "save",
    "scan_blocks": "_data.sources",
    "scan_csv": "_data.sources",
    "scan_parquet": "_data.sources",
    "stacked": "_estimators.stacking",
    "time_budget": "_base.budget",
}
"""Where names live. They are imported when the first of them is asked for: scikit-learn takes a second, and `pilae
--help` does without."""

_LATER = ("cli", "datasets", "export", "plot", "report", "save")
"""Modules that are imported when they are asked for."""


def __getattr__(name: str) -> typing.Any:
    if name in _LATER:
        return import_module(f".{name}", __name__)
    if name in _HOMES:
        # all at once: `load` reads files of any of them
        globals().update({name: getattr(import_module(f".{home}", __name__), name) for name, home in _HOMES.items()})
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_LATER})


__all__ = [
    "SHLN",
    "ConvPILAE",
    "ModelFileError",
    "PILAEClassifier",
    "PILAEImageClassifier",
    "PILAERegressor",
    "PILAutoencoder",
    "PILClassifier",
    "PILRegressor",
    "StackedPILAE",
    "__version__",
    "load",
    "scan_blocks",
    "scan_csv",
    "scan_parquet",
    "stacked",
    "time_budget",
]
