"""Width rules and the paper's formula."""

import warnings

import numpy as np
import pytest

from helpers import blobs
from pilae import SHLN, PILAEClassifier
from pilae._network.structure import FORMULA, formula_width, widest_head
from studies.paper.fit_formula import TRIPLES, coefficients, predicted


def test_the_formula_is_the_refit_on_the_papers_triples():
    np.testing.assert_allclose(FORMULA, coefficients(), rtol=1e-5)
    assert len(TRIPLES) == 11


def test_the_formula_with_a_set_left_out_predicts_like_the_paper():
    published = {"Mfeat": 1921, "Prior": 2416, "Har 1": 2627, "Advertisement": 2497, "Isolet": 2949, "Har 2": 2603}
    for name, width in published.items():
        assert predicted(name, TRIPLES) == pytest.approx(width, rel=0.08)


def test_outside_its_range_the_formula_warns_and_says_what_it_used():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 1000 < formula_width(646, 1400, 10**6) < 2500
    with pytest.warns(UserWarning, match="rank 784 and 60000 distinct rows it gives -[0-9]+, and 784 is used"):
        assert formula_width(784, 60_000, 10**6) == 784


def test_a_model_uses_it():
    X, y = blobs(400)
    model = PILAEClassifier(depth=0, head=SHLN(width="formula")).fit(X, y)
    assert model.head_width_ == 6  # negative here: the rank, as eq (30) has it
    with pytest.raises(ValueError, match="'auto', 'formula'"):
        PILAEClassifier(head=SHLN(width="big")).fit(X, y)


def test_widest_head():
    assert widest_head(100) == 33
    assert widest_head(600) == 250
    assert widest_head(1000) == 500
    assert widest_head(10_000) == 1666
    assert widest_head(10**9) == 6000
