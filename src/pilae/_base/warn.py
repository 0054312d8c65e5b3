"""Warnings that point at the user's own line."""

import os
import sys
import warnings
from pathlib import Path

import sklearn

_PACKAGE = Path(__file__).parents[1]
_OURS = f"{_PACKAGE}{os.sep}"
_COMMAND = f"{_PACKAGE / 'cli'}{os.sep}"
_SKLEARN = f"{Path(sklearn.__file__).parent}{os.sep}"


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the line that called pilae: the first outside it and scikit-learn's wrappers, or the command's own.

    How deep that is depends on both (callbacks, pipelines, searches), so no number could be written down.
    """
    frame, level = sys._getframe(), 1
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        if file.startswith(_COMMAND) or not file.startswith((_OURS, _SKLEARN)):
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
