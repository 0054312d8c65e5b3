"""pilae: deep networks without gradient descent.

Pseudoinverse learning for stacked autoencoders (PILAE) as scikit-learn estimators.
"""

from importlib import import_module

from ._data.sources import scan_blocks, scan_csv, scan_parquet
from ._estimators.autoencoder import PILAutoencoder
from ._estimators.classifier import PILAEClassifier
from ._estimators.images import ConvPILAE
from ._estimators.pil import PILClassifier, PILRegressor
from ._estimators.regressor import PILAERegressor
from ._estimators.shln import SHLN
from ._estimators.stack import StackedPILAE
from ._estimators.stacking import stacked
from .save import ModelFileError, load

__version__ = "0.1.0.dev0"

_LATER = ("datasets", "export", "plot", "report")
"""Modules that are imported when they are asked for."""


def __getattr__(name: str):
    if name in _LATER:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "SHLN",
    "ConvPILAE",
    "ModelFileError",
    "PILAEClassifier",
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
]
