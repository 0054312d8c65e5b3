"""Tests that try to break pilae: hostile numbers, files and moments. `make torture` runs all of them at full count.

Every part is a module with two sets of counts, QUICK (run by the tests, seconds) and FULL (run by `python -m torture`),
and a function `run(**counts)` that returns what it counted and measured, or raises `Broken`.
"""

PARTS: dict[str, str] = {
    "numbers": "on hostile numbers every estimator gives a right answer, or refuses in one sentence",
}
"""Name of the module -> what it promises; in the order they are run."""
