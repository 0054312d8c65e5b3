"""One fixture over all array libraries; scikit-learn's array API checks run instead of skipping."""

import os
import random

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy is imported

import array_api_strict
import hypothesis
import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from pilae._arrays import to_numpy

# The same examples every time, so that a change is judged and not luck; HYPOTHESIS_PROFILE=explore looks further.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=30)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=500)
hypothesis.settings.register_profile("other", deadline=None, max_examples=30, database=None)  # of --hypothesis-seed
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_addoption(parser):
    parser.addoption(
        "--full", action="store_true", help="tests/torture at full count: tens of minutes; keeps what is measured"
    )
    parser.addoption("--order", type=int, metavar="SEED", help="files, and the tests of each, in a random order")


def pytest_report_header(config):
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    kernels = {f"{pool.get('architecture', pool['internal_api'])} x{pool['num_threads']}" for pool in pools}
    order = config.getoption("--order")
    return [f"BLAS: {', '.join(sorted(kernels))}"] + ([] if order is None else [f"order: --order={order}"])


def pytest_collection_modifyitems(config, items):
    """Whole files stay together, so that what a file makes once is made once."""
    seed = config.getoption("--order")
    if seed is None:
        return
    shuffled = random.Random(seed)
    files = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    paths = sorted(files)
    shuffled.shuffle(paths)
    for path in paths:
        shuffled.shuffle(files[path])
    items[:] = [item for path in paths for item in files[path]]


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
