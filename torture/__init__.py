"""Tests that try to break pilae: hostile numbers, files and moments. `make torture` runs all of them at full count.

Every part is a module with two sets of counts, QUICK (run by the tests, seconds) and FULL (run by `python -m torture`),
and a function `run(**counts)` that returns what it counted and measured, or raises `Broken`.
"""

PARTS: dict[str, str] = {
    "supply": "wheel and sdist are reproducible and work, dependencies keep their bounds, licences and no known holes",
    "load": "a million predictions and ten thousand fits leave no memory, file or thread behind",
}
"""Name of the module -> what it promises; in the order they are run."""
