"""Parameters: scikit-learn's sentence for a wrong one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._base.scalars import is_integer, is_number
from .._engine.activations import ACTIVATIONS


def bad(estimator: Any, name: str, must: str) -> ValueError:
    """scikit-learn's sentence for a wrong parameter."""
    value = getattr(estimator, name)
    return ValueError(f"The {name!r} parameter of {type(estimator).__name__} must be {must}. Got {value!r} instead.")


def check_choice(estimator: Any, name: str, choices: tuple[Any, ...]) -> None:
    value = getattr(estimator, name)
    if not any(value is c or (isinstance(value, str) and value == c) for c in choices):
        raise bad(estimator, name, "one of " + ", ".join(repr(c) for c in choices))


def check_number(
    estimator: Any, name: str, choices: tuple[Any, ...] = (), low: float = 0.0, *, infinite: bool = False
) -> None:
    value = getattr(estimator, name)
    if any(isinstance(value, type(c)) and value == c for c in choices):
        return
    if not is_number(value) or value < low or (math.isinf(value) and not infinite):
        words = "".join(f"{c!r}, " for c in choices) + ("or " if choices else "")
        range_ = f"a number of at least {low:g}" + (" (float('inf') included)" if infinite else "")
        raise bad(estimator, name, words + range_)


def check_count(estimator: Any, name: str, choices: tuple[Any, ...] = (), low: int = 1) -> None:
    value = getattr(estimator, name)
    if any(isinstance(value, type(c)) and value == c for c in choices):
        return
    if not is_integer(value) or value < low:
        words = "".join(f"{c!r}, " for c in choices) + ("or " if choices else "")
        raise bad(estimator, name, words + f"an integer of at least {low}")


def check_flag(estimator: Any, name: str, choices: tuple[str, ...] = ()) -> None:
    """True or False, Python's or NumPy's (a grid search hands out NumPy's), or one of the words."""
    value = getattr(estimator, name)
    if not isinstance(value, (bool, np.bool_)) and not (isinstance(value, str) and value in choices):
        raise bad(estimator, name, "".join(f"{c!r}, " for c in choices) + "True or False")


def check_width(estimator: Any) -> None:
    """width: "auto", "rank", "decay", ("rank", alpha), ("decay", beta), ("error", target), an int or a list of ints."""
    value = estimator.width
    if isinstance(value, str) and value in ("auto", "rank", "decay"):
        return
    if is_integer(value) and value >= 1:
        return
    if isinstance(value, (list, np.ndarray)) and len(value) and all(is_integer(v) and v >= 1 for v in value):
        return
    if isinstance(value, tuple) and len(value) == 2 and value[0] in ("rank", "decay", "error"):
        low = 0 if value[0] == "rank" else 1e-12
        if is_number(value[1]) and low <= value[1] <= 1:
            return
    if isinstance(value, tuple) and len(value) and all(is_integer(v) and v >= 1 for v in value):
        return
    raise bad(
        estimator,
        "width",
        "'auto', 'rank', 'decay', ('rank', alpha), ('decay', beta) or ('error', target) with a number from 0 to 1, a "
        "positive integer, or a list of positive integers",
    )


def check_network(estimator: Any) -> None:
    """The parameters every network of autoencoders shares."""
    check_count(estimator, "depth", ("auto",), low=0)
    check_width(estimator)
    check_count(estimator, "max_depth", low=0)
    check_layer(estimator)
    check_choice(estimator, "input_scaling", ("auto", "none", "standard", "asinh"))
    growth = estimator.growth
    if not (growth in ("loo", "rank") if isinstance(growth, str) else is_number(growth) and 0 <= growth < 1):
        raise bad(estimator, "growth", "'loo', 'rank' or a number from 0 to 1 (the fraction of N in the rank rule)")
    listed = not isinstance(estimator.width, str) and not is_integer(estimator.width)
    if listed and not isinstance(estimator.width[0], str):
        n_layers = len(estimator.width)
        if estimator.depth not in ("auto", n_layers):
            raise ValueError(
                f"'width' lists {n_layers} layers but 'depth' is {estimator.depth!r}: a list fixes the depth, so leave "
                f"depth='auto' or set depth={n_layers}."
            )


def check_layer(estimator: Any) -> None:
    """The parameters of one autoencoder layer."""
    check_choice(estimator, "encoder", ("rows", "truncated"))
    check_choice(estimator, "anchors", ("spread", "first"))
    check_number(estimator, "encoder_ridge", ("auto",), infinite=True)
    check_choice(estimator, "activation", tuple(ACTIVATIONS))
    gain = estimator.gain
    positive = (
        isinstance(gain, (tuple, list)) and len(gain) == 2 and all(is_number(g) and 0 < g < math.inf for g in gain)
    )
    if gain is not None and not positive:
        raise bad(estimator, "gain", "None or a pair of positive numbers such as (4, 1)")
    check_number(estimator, "decoder_ridge")
    check_number(estimator, "decoder_l1")
    check_flag(estimator, "tied")


def check_running(estimator: Any) -> None:
    """Where and how to compute."""
    check_count(estimator, "fit_rows", (None, "auto") if hasattr(estimator, "head") else (None,), low=2)
    check_place(estimator)


def check_place(estimator: Any) -> None:
    """Device, dtype, blocks and progress."""
    check_choice(estimator, "dtype", (None, "float32", "float64"))
    check_count(estimator, "block_rows", ("auto",))
    if estimator.device is not None and not isinstance(estimator.device, str):
        raise bad(estimator, "device", "None or the name of a device such as 'cuda'")
    if not is_number(estimator.verbose) and not isinstance(estimator.verbose, bool):
        raise bad(estimator, "verbose", "0 or 1")
