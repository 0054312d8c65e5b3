"""What each reading of the paper does: one thing changed at a time, MNIST and Fashion-MNIST.

The base is two layers of 705 and 634 neurons with an SHLN of 2,000. Accuracy on the test rows is shown beside
leave-one-out on training rows, which is what a choice may look at.
"""

from collections.abc import Callable

from pilae import PILAEClassifier
from studies.data import images
from studies.measure import seconds_of
from studies.paper.setting import QUICK, ROWS
from studies.store import checksum

BASE = {"width": [705, 634], "head_width": 500 if QUICK else 2000, "random_state": 0}

CHANGES: dict[str, dict[str, dict]] = {
    "": {"base: rows, gain (4, 1), tied, encoder ridge 1e-3, spread anchors, SHLN": {}},
    "encoder": {
        "truncated singular directions, 650-585 (MNIST has rank below 705)": {
            "encoder": "truncated",
            "width": [650, 585],
        },
        "rows, 650-585": {"width": [650, 585]},
    },
    "gain": {
        "none: pre-activations as they come": {"gain": None},
        "(1, 1)": {"gain": (1, 1)},
        "(4, 2)": {"gain": (4, 2)},
        "(4, 4)": {"gain": (4, 4)},
    },
    "tying": {"not tied: features of the pseudoinverse encoder": {"tied": False}},
    "encoder ridge (layers)": {
        f"{ridge:g}": {"encoder_ridge": ridge, "head_encoder_ridge": 1e-6} for ridge in (0, 1e-6, 1e-1, 10.0)
    },
    "anchors": {"the first rows": {"anchors": "first"}},
    "head": {
        "pairs of anchors": {"head_anchors": "pairs"},
        "pairs, head encoder ridge 1e-2": {"head_anchors": "pairs", "head_encoder_ridge": 1e-2},
        "ridge on the features, no SHLN": {"head": "ridge"},
        "softmax": {"head": "softmax"},
    },
    "depth": {f"{depth} layer{'s' * (depth != 1)}": {"width": ("decay", 0.9), "depth": depth} for depth in range(6)},
    "the paper to the letter": {
        "first rows, no ridge, no gain, SHLN": {
            "anchors": "first",
            "encoder_ridge": 0,
            "gain": None,
            "head_encoder_ridge": 1e-6,
        },
        "the same, softmax": {"anchors": "first", "encoder_ridge": 0, "gain": None, "head": "softmax"},
        "truncated, 650-585, no gain, SHLN": {"encoder": "truncated", "gain": None, "width": [650, 585]},
        "ridge of eq (3) in the output": {"ridge": "guo2003"},
    },
}


def measured(name: str, changes: dict) -> dict:
    split = images(name, rows=ROWS)
    model = PILAEClassifier(**(BASE | changes))
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
