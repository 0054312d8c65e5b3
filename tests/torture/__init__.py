"""Tests that try to break pilae: hostile numbers, files and moments. `make torture` runs all of them at full count.

Every part is a module with two sets of counts, QUICK (seconds) and FULL (`pytest tests/torture --full`), and a function
`run(**counts)` that returns what it counted and measured, or raises `Broken`. `test_parts.py` runs them.
"""

PARTS: dict[str, str] = {
    "numbers": "on hostile numbers every estimator gives a right answer, or refuses in one sentence",
    "images": "images of any size, dtype, layout and level get right answers, or are refused in one sentence",
    "truth": "every solver is within its stated bound of the answer with 50 digits, at condition numbers up to 1e14",
    "streams": "a hundred thousand partial_fit and forget steps leave the model that a fresh fork would be",
    "files": "a mutated or forged model file is refused by one error, or loads and predicts what was saved",
    "readers": "whatever bytes a table holds, it is read rightly or refused in one sentence",
    "faults": "killed, interrupted, out of disk or memory: as before or as after, nothing between",
    "cluster": "workers killed, slow or failing: the model that memory would have given, or the source's own error",
    "threads": "a model asked by many threads and processes at once, and while it is updated, answers as if by one",
    "privacy": "what forget takes away and what stays, by membership inference",
    "supply": "wheel and sdist are reproducible and work, dependencies keep their bounds, licences and no known holes",
    "load": "a million predictions and ten thousand fits leave no memory, file or thread behind",
}
"""Name of the module -> what it promises; in the order they are run."""
