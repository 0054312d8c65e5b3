"""pilae: deep networks without gradient descent.

Pseudoinverse learning for stacked autoencoders (PILAE) as scikit-learn estimators.
"""

from .model import PILAEClassifier, PILAERegressor
from .pil import PILClassifier, PILRegressor
from .save import load
from .sources import scan_blocks, scan_csv, scan_parquet
from .stack import PILAutoencoder, StackedPILAE

__version__ = "0.1.0.dev0"

__all__ = [
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
]
