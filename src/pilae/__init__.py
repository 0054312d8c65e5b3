"""pilae: deep networks without gradient descent.

Pseudoinverse learning for stacked autoencoders (PILAE) as scikit-learn estimators.
"""

from importlib import import_module

from .conv import ConvPILAE
from .model import PILAEClassifier, PILAERegressor
from .pil import PILClassifier, PILRegressor
from .save import ModelFileError, load
from .sources import scan_blocks, scan_csv, scan_parquet
from .stack import PILAutoencoder, StackedPILAE
from .stacking import stacked

__version__ = "0.1.0.dev0"

_LATER = ("datasets", "export", "plot", "report", "tables")
"""Modules that are imported when they are asked for."""


def __getattr__(name: str):
    if name in _LATER:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
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
