"""Answers in a file, and how far others are from them."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .cases import Answer, Case

ANSWERS = Path(__file__).parent / "answers.json"


def bound(case: Case) -> float:
    """How far an array may be from the recorded one, relative to its largest entry.

    Another BLAS, another number of threads or blocks and another processor add the same numbers in another order. Each
    sum then differs by about the eps of the dtype, relative to its largest terms; solving a ridge system multiplies
    this by its condition number, at most the number of columns over the ridge (both relative to the mean of the
    diagonal, which is one for the standardised features of the output layer). Every case says how large that is for the
    worst of its systems. The factor of 100 stands for the length of sums, which counts by its root, and for the few
    systems that are solved one after another.
    """
    return 100 * float(np.finfo(case.dtype).eps) * case.condition


def run(case: Case) -> Answer:
    """The answer of today's code."""
    with tempfile.TemporaryDirectory() as folder:
        return {name: as_stored(value) for name, value in case.run(Path(folder)).items()}


def as_stored(value: Any) -> Any:
    """Text as it is; arrays and numbers with their dtype."""
    if isinstance(value, str):
        return value
    array = np.asarray(value)
    kind = "text" if array.dtype.kind in "UO" else array.dtype.name
    if array.dtype.kind == "f":  # no more digits than any bound looks at
        array = np.array([float(f"{number:.13g}") for number in array.ravel()]).reshape(array.shape)
    return {"dtype": kind, "values": array.tolist()}


def read() -> dict[str, Answer]:
    """The recorded answers."""
    return json.loads(ANSWERS.read_text())


def write(answers: dict[str, Answer]) -> None:
    """One line for each value, so that a change shows which."""
    blocks = []
    for name in sorted(answers):
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(answers[name].items())]
        blocks.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    ANSWERS.write_text("{\n" + ",\n".join(blocks) + "\n}\n")


def difference(answer: Any, recorded: Any) -> float:
    """Of two stored values, relative to the largest recorded entry; infinite where they may not differ at all."""
    if isinstance(recorded, str) or isinstance(answer, str) or answer["dtype"] != recorded["dtype"]:
        return 0.0 if answer == recorded else math.inf
    if not recorded["dtype"].startswith("float"):
        return 0.0 if answer["values"] == recorded["values"] else math.inf
    a, b = np.asarray(answer["values"], float), np.asarray(recorded["values"], float)
    finite = np.isfinite(b)
    if a.shape != b.shape or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return math.inf
    gap, scale = np.max(np.abs(a - b)[finite], initial=0.0), np.max(np.abs(b[finite]), initial=0.0)
    return float(gap / scale) if gap else 0.0


def differences(answer: Answer, recorded: Answer) -> dict[str, float]:
    """Of every value; one that is missing, or new, differs infinitely."""
    return {
        name: difference(answer[name], recorded[name]) if name in answer and name in recorded else math.inf
        for name in answer.keys() | recorded.keys()
    }


def worst(case: Case, recorded: Answer) -> tuple[float, str]:
    """(largest difference over the bound, the name of its value)."""
    over = {name: value / bound(case) for name, value in differences(run(case), recorded).items()}
    return max(((value if value == value else math.inf, name) for name, value in over.items()), default=(0.0, ""))
