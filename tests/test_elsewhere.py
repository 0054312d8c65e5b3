"""What `make test-elsewhere` covers, and that it does not take one kernel for another."""

import os

import pytest

from tools import elsewhere

pytest_plugins = ["pytester"]


def test_the_runs_cover_every_condition():
    runs = elsewhere.RUNS.values()
    assert {run.threads for run in runs} == {1, 2}
    assert {run.busy for run in runs} == {run.shuffled for run in runs} == {True, False}
    assert sum(bool(run.needs) for run in runs) >= 4
    environment, options = elsewhere.conditions("own", 5)
    assert "OPENBLAS_CORETYPE" not in environment
    assert options == ["--order=5", "--hypothesis-seed=5"]


@pytest.mark.skipif("sse4_2" not in elsewhere.flags(), reason="the processor cannot run this kernel")
def test_a_kernel_that_is_not_the_one_asked_for_is_an_error():
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Nehalem"}
    with pytest.raises(SystemExit, match=r"Asked for Haswell with 1 threads, OpenBLAS uses \[\['Nehalem', 1\]"):
        elsewhere.check_kernel("Haswell", environment)


def test_another_order_has_the_same_tests(pytester):
    pytester.makeconftest((elsewhere.ROOT / "tests/conftest.py").read_text())
    for name in "abc":
        pytester.makepyfile(**{f"test_{name}": "\n".join(f"def test_{k}(): pass" for k in range(9))})
    orders = []
    for options in ([], ["--order=1"], ["--order=1"], ["--order=2"]):
        out = pytester.runpytest("--collect-only", "-q", *options).outlines
        orders.append([line for line in out if "::" in line])
    assert len(orders[0]) == 27
    assert orders[1] == orders[2] != orders[3]
    assert orders[1] != orders[0]
    assert sorted(orders[1]) == sorted(orders[3]) == sorted(orders[0])
