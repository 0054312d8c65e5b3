"""An output layer, solved where the fewer numbers are: columns x columns, or rows x rows."""

import numpy as np

from .fit_output import HeadInput, OutputFit, OutputSpec
from .head import LinearHead
from .neurons import HiddenLayer
from .wide_output import WideFit


def fit_output(head_input: HeadInput, hidden: HiddenLayer | None, neurons: np.ndarray, spec: OutputSpec) -> LinearHead:
    """Solve the output layer in one pass, and score it by leave-one-out; `neurons` says which scored rows became
    neurons."""
    wide = hidden is None and head_input.rows.n < head_input.columns
    return (WideFit if wide else OutputFit)(head_input, hidden, neurons, spec).head()
