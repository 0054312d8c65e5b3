"""What each reading of the paper does: one thing changed at a time, MNIST and Fashion-MNIST.

The base is two layers of 705 and 634 neurons with an SHLN of 2,000. Accuracy on the test rows is shown beside
leave-one-out on training rows, which is what a choice may look at.
"""

from collections.abc import Callable

from pilae import SHLN, PILAEClassifier, PILAutoencoder
from studies.data import images
from studies.measure import seconds_of
from studies.paper.setting import QUICK, ROWS
from studies.store import checksum

WIDTH = 500 if QUICK else 2000
"""Of the SHLN."""

CHANGES: dict[str, dict[str, dict]] = {
    "": {"base: rows, gain (4, 1), tied, encoder ridge 1e-3, spread anchors, SHLN": {}},
    "encoder": {
        "truncated singular directions, 650-585 (MNIST has rank below 705)": {
            "layer__encoder": "truncated",
            "width": [650, 585],
        },
        "rows, 650-585": {"width": [650, 585]},
    },
    "gain": {
        "none: pre-activations as they come": {"layer__gain": None},
        "(1, 1)": {"layer__gain": (1, 1)},
        "(4, 2)": {"layer__gain": (4, 2)},
        "(4, 4)": {"layer__gain": (4, 4)},
    },
    "tying": {"not tied: features of the pseudoinverse encoder": {"layer__tied": False}},
    "encoder ridge (layers)": {f"{ridge:g}": {"layer__encoder_ridge": ridge} for ridge in (0, 1e-6, 1e-1, 10.0)},
    "anchors": {"the first rows": {"layer__anchors": "first"}},
    "head": {
        "pairs of anchors": {"head__anchors": "pairs"},
        "pairs, head encoder ridge 1e-2": {"head__anchors": "pairs", "head__encoder_ridge": 1e-2},
        "ridge on the features, no SHLN": {"head": "ridge"},
        "softmax": {"head": "softmax"},
    },
    "depth": {f"{depth} layer{'s' * (depth != 1)}": {"width": ("decay", 0.9), "depth": depth} for depth in range(6)},
    "the paper to the letter": {
        "first rows, no ridge, no gain, SHLN": {
            "layer__anchors": "first",
            "layer__encoder_ridge": 0,
            "layer__gain": None,
        },
        "the same, softmax": {
            "layer__anchors": "first",
            "layer__encoder_ridge": 0,
            "layer__gain": None,
            "head": "softmax",
        },
        "truncated, 650-585, no gain, SHLN": {
            "layer__encoder": "truncated",
            "layer__gain": None,
            "width": [650, 585],
        },
        "ridge of eq (3) in the output": {"ridge": "guo2003"},
    },
}


def network(changes: dict) -> PILAEClassifier:
    """The base with some parameters changed, those of its layers and of its head one by one."""
    base = PILAEClassifier(width=[705, 634], layer=PILAutoencoder(), head=SHLN(WIDTH), random_state=0)
    return base.set_params(**changes)


def measured(name: str, changes: dict) -> dict:
    split = images(name, rows=ROWS)
    model = network(changes)
    seconds, _ = seconds_of(lambda: model.fit(split.X, split.y))
    return {
        "accuracy": model.score(split.X_test, split.y_test),
        "leave_one_out": getattr(model, "loo_score_", None),
        "reconstruction_errors": [layer.reconstruction_error for layer in model.layers_],
        "seconds": seconds,
        "checksum": checksum(split.X, split.X_test),
    }


def cells() -> dict[str, Callable[[], dict]]:
    return {
        f"{name}: {group}: {change}": lambda name=name, arguments=arguments: measured(name, arguments)
        for name in (("mnist",) if QUICK else ("mnist", "fashion_mnist"))
        for group, changes in CHANGES.items()
        for change, arguments in changes.items()
    }
