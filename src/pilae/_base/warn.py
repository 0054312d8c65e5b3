"""Warnings that point at the user's own line."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import sklearn

_PRIVATE = f"{Path(__file__).parents[1]}{os.sep}_"
_SKLEARN = f"{Path(sklearn.__file__).parent}{os.sep}"


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the line that called pilae: the first outside its private packages and scikit-learn's wrappers.

    How deep that is depends on both (callbacks, pipelines, searches), so no number could be written down.
    """
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_PRIVATE, _SKLEARN)):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
