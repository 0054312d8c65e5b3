"""The parts of `make torture`, at counts that take seconds."""

import importlib
from pathlib import Path

import pytest

import torture


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")  # Python 3.12
@pytest.mark.parametrize("part", torture.PARTS)
def test_part(part):
    module = importlib.import_module(f"torture.{part}")
    assert set(module.QUICK) == set(module.FULL)
    found = module.run(**module.QUICK)
    assert all(isinstance(value, (int, float, str, dict)) for value in found.values())


def test_every_part_is_listed():
    files = {path.stem for path in Path(torture.__file__).parent.glob("*.py")}
    assert files - {"__init__", "__main__", "harness"} == set(torture.PARTS)
