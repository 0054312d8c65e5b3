"""Pictures of why a network is what it is, in the way of scikit-learn's Display objects. Needs matplotlib.

WidthPathDisplay.from_estimator(model)          error of every width, from one fit
DepthDisplay.from_estimator(model)              the candidates of the search, by depth
ImportancesDisplay.from_estimator(model)        which columns move the outputs
SpectrumDisplay.from_data(X)                    singular values of the data, and where they count as zero
CalibrationDisplay.from_estimator(model, X, y)  whether probabilities mean what they say
StreamDisplay.from_estimator(model)             how well rows were predicted before they were learnt
FiltersDisplay.from_estimator(conv)             the filters of a patch layer
"""

from .displays import (
    CalibrationDisplay,
    DepthDisplay,
    ImportancesDisplay,
    SpectrumDisplay,
    StreamDisplay,
    WidthPathDisplay,
)
from .filters import FiltersDisplay

__all__ = [
    "CalibrationDisplay",
    "DepthDisplay",
    "FiltersDisplay",
    "ImportancesDisplay",
    "SpectrumDisplay",
    "StreamDisplay",
    "WidthPathDisplay",
]
