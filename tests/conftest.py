"""One fixture over all array libraries; scikit-learn's array API checks run instead of skipping."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy is imported

import array_api_strict
import hypothesis
import numpy as np
import pytest
import torch

from pilae._arrays import to_numpy

# The same examples every time, so that a change is judged and not luck; HYPOTHESIS_PROFILE=explore looks further.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=30)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=500)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_addoption(parser):
    parser.addoption(
        "--full", action="store_true", help="tests/torture at full count: tens of minutes; keeps what is measured"
    )


class Library:
    """Makes arrays of one library and checks that results stayed there."""

    def __init__(self, name):
        self.name = name

    def __call__(self, x):
        x = np.array(x)
        if self.name == "numpy":
            return x
        if self.name == "numpy-readonly":
            x.flags.writeable = False
            return x
        return torch.asarray(x) if self.name == "torch" else array_api_strict.asarray(x)

    def owns(self, x):
        kind = {"torch": torch.Tensor, "array-api-strict": type(array_api_strict.asarray(0.0))}
        return isinstance(x, kind.get(self.name, np.ndarray))

    @staticmethod
    def numpy(x):
        return to_numpy(x)


@pytest.fixture(params=["numpy", "numpy-readonly", "array-api-strict", "torch"])
def library(request):
    """Every array library the code must serve; none may be missing."""
    return Library(request.param)
