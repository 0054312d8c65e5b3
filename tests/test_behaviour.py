"""Models say what they said: small ones against recorded answers, and files of earlier versions."""

import pytest

from behaviour import compare
from behaviour.cases import CASES
from behaviour.files import FILES

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::ResourceWarning",
    "ignore::FutureWarning",
    "ignore:.* of scikit-learn .*, and this is",  # files are of other versions, that is their point
)
RECORDED = compare.read()


@pytest.mark.parametrize("name", CASES)
def test_a_model_says_what_it_said(name):
    over, value = compare.worst(CASES[name], RECORDED[name])
    assert over <= 1, f"{value} is {over:.3g} times its bound from what was recorded"


@pytest.mark.parametrize("name", FILES)
def test_a_file_loads_and_says_what_it_said(name):
    over, value = compare.worst(FILES[name], RECORDED[f"file: {name}"])
    assert over <= 1, f"{value} is {over:.3g} times its bound from what was recorded"


def test_every_answer_belongs_to_a_case():
    assert set(RECORDED) == set(CASES) | {f"file: {name}" for name in FILES}
