"""Parameters: what each may be, as one table for a class, and scikit-learn's sentence for a wrong one."""

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from .._base.scalars import is_integer, is_number
from .._engine.activations import ACTIVATIONS
from .._network.branches import POOLING
from .._network.radial import KERNELS
from .._search.spec import MOST_BRANCHES


class Rule(NamedTuple):
    """Which values are taken, and the words for them."""

    accepts: Callable[[Any], bool]
    words: str


Rules = Mapping[str, Rule]


def bad(estimator: BaseEstimator, name: str, must: str) -> ValueError:
    """scikit-learn's sentence for a wrong parameter."""
    value = getattr(estimator, name)
    return ValueError(f"The {name!r} parameter of {type(estimator).__name__} must be {must}. Got {value!r} instead.")


def check(estimator: BaseEstimator, rules: Rules) -> None:
    for name, rule in rules.items():
        if not rule.accepts(getattr(estimator, name)):
            raise bad(estimator, name, rule.words)


def _is_one_of(value: Any, choices: tuple) -> bool:
    """Whether it is one of these words or numbers; True is not 1."""
    plain = isinstance(value, str) or is_integer(value)
    return any(value is c or (plain and isinstance(c, (str, int)) and value == c) for c in choices)


def _listed(choices: tuple) -> str:
    return "".join(f"{c!r}, " for c in choices) + ("or " if choices else "")


def choice(*choices: Any) -> Rule:
    return Rule(lambda v: _is_one_of(v, choices), "one of " + ", ".join(repr(c) for c in choices))


def number(*choices: Any, infinite: bool = False) -> Rule:
    """One of the choices, or at least 0."""
    words = _listed(choices) + "a number of at least 0" + (" (float('inf') included)" if infinite else "")
    return Rule(
        lambda v: _is_one_of(v, choices) or (is_number(v) and v >= 0 and (infinite or not math.isinf(v))), words
    )


def count(*choices: Any, low: int = 1) -> Rule:
    words = _listed(choices) + f"an integer of at least {low}"
    return Rule(lambda v: _is_one_of(v, choices) or (is_integer(v) and v >= low), words)


def flag(*choices: str) -> Rule:
    """True or False, Python's or NumPy's (a grid search hands out NumPy's), or one of the words."""
    words = "".join(f"{c!r}, " for c in choices) + "True or False"
    return Rule(lambda v: isinstance(v, (bool, np.bool_)) or _is_one_of(v, choices), words)


def _is_positive(value: Any) -> bool:
    return is_integer(value) and value >= 1


def _is_width(width: Any) -> bool:
    if isinstance(width, str):
        return width in ("auto", "rank", "decay")
    if isinstance(width, tuple) and len(width) == 2 and isinstance(width[0], str):
        rule, number = width
        return rule in ("rank", "decay", "error") and is_number(number) and (0 < number <= 1 or width == ("rank", 0))
    if isinstance(width, (list, tuple, np.ndarray)):
        return len(width) > 0 and all(map(_is_positive, width))
    return _is_positive(width)


def _is_pair(gain: Any) -> bool:
    return isinstance(gain, (tuple, list)) and len(gain) == 2 and all(is_number(g) and 0 < g < math.inf for g in gain)


def _is_growth(growth: Any) -> bool:
    return growth in ("loo", "rank") if isinstance(growth, str) else is_number(growth) and 0 <= growth < 1


WIDTH = Rule(
    _is_width,
    "'auto', 'rank', 'decay', ('rank', alpha), ('decay', beta) or ('error', target) with a number from 0 to 1, a "
    "positive integer, or a list of positive integers",
)

PLACE: Rules = {
    "dtype": choice(None, "float32", "float64"),
    "block_rows": count("auto"),
    "device": Rule(lambda v: v is None or isinstance(v, str), "None or the name of a device such as 'cuda'"),
    "verbose": Rule(
        lambda v: isinstance(v, (bool, np.bool_)) or (is_integer(v) and v >= 0),
        "True, False or an integer of at least 0",
    ),
}
"""Where and how to compute."""

KEPT: Rules = {"keep_decoders": flag()}

SCALING: Rules = {"input_scaling": choice("auto", "none", "standard", "asinh", "pieces")}


def _names_columns(value: Any) -> bool:
    """Whether it is a list of numbers, of names or of truth values."""
    if isinstance(value, str | dict | set) or np.ndim(value) != 1:
        return False
    return np.asarray(value).dtype.kind in "biuUO" or np.size(value) == 0


CATEGORICAL: Rules = {
    "categorical_features": Rule(
        lambda v: v is None or _is_one_of(v, ("from_dtype",)) or _names_columns(v),
        "None, 'from_dtype', or a list of columns: their numbers, their names, or a truth value for each",
    )
}

LAYER: Rules = {
    "encoder": choice("rows", "truncated"),
    "anchors": choice("spread", "first"),
    "encoder_ridge": number("auto", infinite=True),
    "activation": choice(*ACTIVATIONS),
    "gain": Rule(lambda v: v is None or _is_pair(v), "None or a pair of positive numbers such as (4, 1)"),
    "decoder_ridge": number(),
    "decoder_l1": number(),
    "tied": flag(),
}
"""How an autoencoder layer is built."""

STACK: Rules = {
    "depth": count("auto", low=0),
    "width": WIDTH,
    "max_depth": count(low=0),
    "growth": Rule(_is_growth, "'loo', 'rank' or a number from 0 to 1 (the fraction of N in the rank rule)"),
    **SCALING,
}

NETWORK: Rules = {
    **STACK,
    "fit_rows": count(None, "auto", low=2),
    **PLACE,
    "skip": flag("auto"),
    "branches": Rule(
        lambda v: _is_one_of(v, ("auto",)) or (_is_positive(v) and v <= MOST_BRANCHES),
        f"'auto' or an integer from 1 to {MOST_BRANCHES}",
    ),
    "keep_statistics": flag(),
    "ridge": number("auto", "guo2003"),
    **CATEGORICAL,
}
"""What the classifier and the regressor share."""

SHLN_RULES: Rules = {
    "width": count("auto", "formula"),
    "encoder_ridge": number("auto", infinite=True),
    "anchors": choice("auto", "rows", "pairs", "radial"),
    "direct_links": flag("auto"),
    "activation": choice("auto", *ACTIVATIONS, *KERNELS),
    "length": Rule(
        lambda v: _is_one_of(v, ("auto",)) or (is_number(v) and 0 < v < math.inf), "'auto' or a number above 0"
    ),
    "metric": choice("auto", "inputs", "labels", "diagonal"),
    "networks": choice("auto", 1),
}

IMAGES: Rules = {
    "patch": Rule(
        lambda v: (
            _is_one_of(v, ("auto",))
            or _is_positive(v)
            or (isinstance(v, (list, tuple)) and len(v) > 0 and all(map(_is_positive, v)))
        ),
        "'auto', a positive integer or a list of positive integers",
    ),
    "filters": count("auto"),
    "pool": count("auto"),
    "stride": count("auto"),
    "max_features": count(),
    "pooling": choice("auto", *POOLING),
    "encoder_ridge": number("auto", infinite=True),
    "contrast": number("auto", None),
    "mirror": flag("auto"),
    "depth": choice("auto", 1, 2, 3),
    "threshold": number("auto"),
    "power": number(),
    "both_signs": flag(),
    "tied": flag(),
    **PLACE,
    "image_shape": Rule(
        lambda v: v is None or (isinstance(v, (tuple, list)) and len(v) in (2, 3) and all(map(_is_positive, v))),
        "None, (height, width) or (height, width, channels)",
    ),
}

IMAGE_CLASSIFIER: Rules = {
    **{name: IMAGES[name] for name in ("patch", "filters", "pool", "encoder_ridge", "contrast", "mirror", "threshold")},
    "pooling": choice("auto", "smooth", "average"),
    "shift": count("auto", low=0),
    "anchors": count("auto", low=2),
    "ridge": number("auto"),
    "image_shape": IMAGES["image_shape"],
    **PLACE,
}

PIL: Rules = {"activation": choice(*ACTIVATIONS), "max_depth": count(low=0)}


def check_listed(estimator: Any) -> None:
    """A list of widths says how many layers there are."""
    width = estimator.width
    if isinstance(width, (list, np.ndarray)) or (isinstance(width, tuple) and not isinstance(width[0], str)):
        n_layers = len(width)
        if estimator.depth not in ("auto", n_layers):
            raise ValueError(
                f"'width' lists {n_layers} layers but 'depth' is {estimator.depth!r}: a list fixes the depth, so leave "
                f"depth='auto' or set depth={n_layers}."
            )


def check_template(estimator: BaseEstimator, template: BaseEstimator, rules: Rules) -> None:
    """An object that says how a part is built: its own parameters are right, and those that the estimator has itself
    are left alone."""
    check(template, rules)
    for key, default in type(template)().get_params(deep=False).items():
        if key not in rules and repr(getattr(template, key)) != repr(default):
            kind, owner = type(template).__name__, type(estimator).__name__
            raise ValueError(
                f"'layer' says how layers are built, and {key!r} is not part of that: leave it out of {kind}(...)"
                + (f", and give it to {owner} itself." if hasattr(estimator, key) else ".")
            )


T = TypeVar("T")


def is_auto(value: Any) -> bool:
    """Whether it is left open."""
    return isinstance(value, str) and value == "auto"


def unless_auto(value: Any, kind: Callable[[Any], T]) -> T | None:
    """A parameter as the engine takes it; None leaves it open."""
    return None if is_auto(value) else kind(value)


def remember(estimator: BaseEstimator, given: dict[str, Any]) -> None:
    """The arguments of a constructor as attributes of the same names, which is all a constructor does."""
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


class TemplateParams(BaseEstimator):
    """`set_params` for estimators with parts that may be given as objects."""

    _templates: ClassVar[Mapping[str, str]] = {}
    """Parameter, and what to write to have an object there."""

    def set_params(self, **values: Any) -> Any:
        """Set parameters, those of an object in `layer` or `head` as layer__name and head__name."""
        for key in values:
            name, _, inner = key.partition("__")
            part = values.get(name, getattr(self, name, None))
            if inner and name in self._templates and (isinstance(part, type) or not hasattr(part, "set_params")):
                raise ValueError(
                    f"{key!r} cannot be set while {name} is {part!r}: give an object first, {name}="
                    f"{self._templates[name]}."
                )
        return super().set_params(**values)
