"""How much of the paper is measured: everything, or with QUICK=1 what takes minutes, into files of its own."""

import os
from pathlib import Path

from studies.store import Run

QUICK = os.environ.get("QUICK", "") not in ("", "0")
"""Fewer sets, rows, seeds and epochs."""

KIND = "quick" if QUICK else "full"

SEEDS = (0,) if QUICK else (0, 1, 2)
"""Of back-propagation."""

ROWS = 10_000 if QUICK else None
"""Of the training images; None is all."""

HERE = Path(__file__).parent

RUN = Run(
    results=HERE / "results" / KIND,
    unfinished=HERE.parents[1] / ".local" / "tables" / KIND,
    command="make tables QUICK=1" if QUICK else "make tables",
)
