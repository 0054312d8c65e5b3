"""Warnings that point at the user's own line."""

import os
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_OURS = f"{_PACKAGE}{os.sep}"
_COMMAND = f"{_PACKAGE / 'cli'}{os.sep}"
_WRAPPERS = tuple(
    f"{folder}{os.sep}"
    for package in ("sklearn", "joblib")  # searches call through joblib, with one job too
    for folder in getattr(find_spec(package), "submodule_search_locations", [])
)


class StrangeRows(UserWarning):
    """Rows are unlike those of `fit`, and answers to them worth less."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the line that called pilae: the first outside it and what scikit-learn wraps around it, or the
    command's own.

    How deep that is depends on both (callbacks, pipelines, searches), so no number could be written down.
    """
    frame, level = sys._getframe(), 1
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        if file.startswith(_COMMAND) or not file.startswith((_OURS, *_WRAPPERS)):
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
