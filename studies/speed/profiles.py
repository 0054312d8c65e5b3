"""Where the seconds of a fit go: every one of them, by what is done and by stage.

    PILAE_DATA=folder python -m studies.speed.profiles [case ...]

Each fit has a process of its own and one thread, so that a profiler sees all that is computed, and all times are those
of the processor. It runs once alone and once under cProfile, which makes small fits slower: "profiled" says how much.
The time of each function without those that it calls is added up by `KINDS`; a product that stands in a function as an
operator is part of that function. Writes studies/speed/results/profiles.json.
"""

import cProfile
import pstats
import time
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris
from threadpoolctl import threadpool_limits

from studies.data import images
from studies.measure import SIDE
from studies.store import run_cases

KINDS = {
    "products of neurons": {"activations.py": ("rows", "neurons"), "radial.py": ("rows", "_responses")},
    "Gram matrices": {"kernels.py": ("gram", "blocks")},
    "other products": {"kernels.py": ("matmul", "affine", "inner_products"), "solving.py": (), "gradients.py": ()},
    "factors and substitution": {
        "kernels.py": ("cholesky", "_factorise", "below", "solve_triangular", "_substitute", "_solve", "_inverses"),
        "linalg.py": (),
        "_linalg.py": (),
        "factors.py": (),
    },
    "leave-one-out": {"loo.py": (), "scores.py": (), "widths.py": (), "calibration.py": (), "search.py": ()},
    "activations": {
        "activations.py": ("activate", "_relu2"),
        "kernels.py": ("overwritten_by_expit", "overwritten_by_tanh", "overwritten_by_relu", "overwritten_by_exp"),
    },
    "centring, scaling, adding up": {
        "moments.py": (),
        "scaling.py": (),
        "output.py": (),
        "kernels.py": ("column_sums", "column_squares", "pieces"),
    },
    "keys of rows": {"keys.py": (), "conversions.py": ()},
}
"""By file the functions whose own time is of a kind; () are all of a file that no other kind names. What is left is
"the rest": NumPy's reductions and copies that have no name of their own, and Python."""

STAGES = {
    "first pass": ("fit.py", "_surveyed"),
    "search, first round": ("choice.py", "_first_round"),
    "search, later rounds": ("choice.py", "_later_round"),
}
"""Functions whose whole time is a stage; what is left of a fit is the chosen network on all rows."""


def kind_of(path: str, line: str) -> str:
    """What a function of that file does."""
    name = PurePath(path).name
    named = next((kind for kind, files in KINDS.items() if line in files.get(name, ())), None)
    whole = next((kind for kind, files in KINDS.items() if files.get(name) == ()), None)
    return named or whole or "the rest"


def processor_seconds(function: Callable[[], Any]) -> float:
    """Of one call, whatever else the machine does."""
    start = time.process_time()
    function()
    return time.process_time() - start


def accounted(fit: Callable[[], Any]) -> dict:
    """Processor seconds of a fit, alone and profiled, and what the profiled ones went into."""
    with threadpool_limits(1):
        A = np.ones((SIDE, SIDE))
        gemm = min(processor_seconds(lambda: A @ A) for _ in range(3))
        alone = processor_seconds(fit)
        profile = cProfile.Profile(time.process_time)
        profile.enable()
        profiled = processor_seconds(fit)
        profile.disable()
    found: dict[tuple[str, int, str], tuple] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    kinds = dict.fromkeys([*KINDS, "the rest"], 0.0)
    for (path, _, name), (_, _, own, _, callers) in found.items():
        if name == "<lambda>" or path == "~":  # of the function that it stands in or is called by
            of_caller = {caller: each[2] for caller, each in callers.items()}
            for (caller_path, _, caller), seconds in of_caller.items():
                kinds[_of_caller(caller_path, caller)] += seconds
            own -= sum(of_caller.values())
        kinds[kind_of(path, name)] += own
    stages = {
        stage: sum(each[3] for (path, _, name), each in found.items() if (PurePath(path).name, name) == place)
        for stage, place in STAGES.items()
    }
    stages["the chosen network, all rows"] = profiled - sum(stages.values())
    return {
        "seconds": alone,
        "gemm": alone / gemm,
        "profiled_seconds": profiled,
        "kinds": kinds,
        "stages": stages,
    }


def _of_caller(path: str, name: str) -> str:
    """What a function without a name is for: `in_parts` calls those of products."""
    return "other products" if name in ("in_parts", "run") else kind_of(path, name)


def model(**given: Any):
    from pilae import PILAEClassifier

    return PILAEClassifier(random_state=0, **given)


def paper() -> dict:
    from pilae import SHLN, PILAutoencoder

    X, y, *_ = images("mnist")
    layer, head = PILAutoencoder(encoder_ridge=1e-3), SHLN(4000, encoder_ridge=1e-3)
    return accounted(lambda: model(width=[705, 634], layer=layer, head=head, ridge=1e-3).fit(X, y))


def many_rows() -> dict:
    from pilae import SHLN

    rng = np.random.default_rng(0)
    X = rng.standard_normal((10**6, 100), dtype=np.float32)
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    return accounted(lambda: model(depth=0, head=SHLN(256, encoder_ridge=1.0), ridge=1e-3).fit(X, y))


def searched(X: np.ndarray, y: np.ndarray) -> dict:
    model().fit(X[:100], y[:100])  # what is imported late is not part of a fit
    return accounted(lambda: model().fit(X, y))


CASES = {
    "MNIST, paper's network, ridges given": paper,
    "MNIST, no argument": lambda: searched(*images("mnist")[:2]),
    "10^6 rows x 100, 256 neurons": many_rows,
    "digits, no argument": lambda: searched(*load_digits(return_X_y=True)),
    "iris, no argument": lambda: searched(*load_iris(return_X_y=True)),
}

if __name__ == "__main__":
    run_cases(__spec__.name, CASES)
