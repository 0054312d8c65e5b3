"""Packages that only some of pilae needs."""

import importlib
from typing import Any


def extra(module: str, name: str, what: str) -> Any:
    """An optional module, of the extra `name`, or the sentence that says what needs it and how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f"{what} needs {module.split('.')[0]}: pip install 'pilae[{name}]'.") from None
