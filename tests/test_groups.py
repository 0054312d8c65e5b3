"""Rows that belong together: leave-group-out against refitting without each group."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from helpers import close
from pilae._engine.group_loo import STACKED, STEPPED
from pilae._engine.loo import leave_one_out
from pilae._engine.scores import Scored, pooled
from pilae._engine.widths import best_width, width_errors
from test_loo import factors, problem, solved


def numbers(sizes):
    """Group numbers of rows that come group by group."""
    return np.repeat(np.arange(len(sizes)), sizes)


SIZES = {
    "pairs": [2] * 20,
    "uneven": [1, 7, 3, 1, 12, 5, 1, 1, 4, 2, 3],
    "wider than the layer": [3, 16, 4, 17],
}


def refit_without(F, Z, w, gone, lam):
    """Outputs of these rows when all their weight is taken out: means estimated anew, scales and lambda held."""
    model = Ridge(alpha=lam).fit(F, Z, sample_weight=np.where(gone, 0.0, w))
    return model.predict(F[gone])


@pytest.mark.parametrize("eigen", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("kind", SIZES)
def test_equals_refitting(kind, weighted, eigen):
    group = numbers(SIZES[kind])
    n = len(group)
    w = np.random.default_rng(3).uniform(0.2, 3.0, n) if weighted else np.ones(n)
    F, Z, _ = problem(n=n, weights=w)
    made, zbar = factors(F, Z, w, eigen)
    ridges = [1e-3, 0.1, 1.0]
    scored = leave_one_out(made, ridges, zbar, lambda: iter([(F, Z, w, w, w, group)]))
    for ridge, each in zip(ridges, scored, strict=True):
        expected = [refit_without(F, Z, w, group == g, ridge * w.sum()) for g in np.unique(group)]
        close(each.outputs, np.concatenate(expected), **solved(F, w, ridge))


@pytest.mark.parametrize("size", [STACKED + 5, STEPPED + 5])
def test_large_groups_of_a_wide_layer(size):
    group = numbers([size, 3, size, 20])
    n, p = len(group), size + 40
    F, Z, w = problem(n=n, p=p, m=2)
    made, zbar = factors(F, Z, w, eigen=False)
    [each] = leave_one_out(made, [0.1], zbar, lambda: iter([(F, Z, w, w, w, group)]))
    expected = [refit_without(F, Z, w, group == g, 0.1 * n) for g in np.unique(group)]
    close(each.outputs, np.concatenate(expected), **solved(F, w, 0.1))


def test_a_group_in_pieces_is_a_group():
    group = numbers([30, 10])
    F, Z, w = problem()
    made, zbar = factors(F, Z, w)
    whole = leave_one_out(made, [0.1, 1.0], zbar, lambda: iter([(F, Z, w, w, w, group)]))
    first = (None, Z[:30], w[:30], w[:30], w[:30], group[:30], lambda: iter([F[:13], F[13:30]]))
    rest = (F[30:], Z[30:], w[30:], w[30:], w[30:], group[30:])
    for each, other in zip(leave_one_out(made, [0.1, 1.0], zbar, lambda: iter([first, rest])), whole, strict=True):
        close(each.outputs, other.outputs, **solved(F, w, 0.1))
    made, zbar = factors(F, Z, w, eigen=False)
    arguments = made.at(0.1), zbar, made.weight, np.ones(3)
    widths = width_errors(*arguments, lambda: iter([(F, Z, w, w, w, group)]), 2)
    in_pieces = width_errors(*arguments, lambda: iter([first, rest]), 2)
    close(in_pieces, widths, **solved(F, w, 0.1))


def test_groups_of_one_row_are_leave_one_out():
    F, Z, w = problem()
    made, zbar = factors(F, Z, w)
    [alone] = leave_one_out(made, [0.1], zbar, lambda: iter([(F, Z, w, w, w)]))
    [grouped] = leave_one_out(made, [0.1], zbar, lambda: iter([(F, Z, w, w, w, np.arange(40))]))
    close(grouped.outputs, alone.outputs, **solved(F, w, 0.1))


@pytest.mark.parametrize("sizes", [SIZES["uneven"], [STEPPED + 7, 60, STEPPED + 30], [2] * 20])
@pytest.mark.parametrize("outputs", [1, 4])
def test_every_width_equals_refitting(sizes, outputs):
    group = numbers(sizes)
    w = np.random.default_rng(5).uniform(0.2, 3.0, len(group))
    F, Z, _ = problem(n=len(group), m=outputs, weights=w)
    made, zbar = factors(F, Z, w, eigen=False)
    scale, chooser = np.linspace(1.0, 2.0, outputs), np.random.default_rng(6).uniform(0, 1, len(group))
    batches = lambda: iter([(F, Z, w, w, chooser, group)])  # noqa: E731
    errors = width_errors(made.at(0.05), zbar, made.weight, scale, batches, first=3)
    assert errors.shape == (len(sizes), 10)
    for width in range(3, 13):
        leading = F[:, :width]
        expected = [refit_without(leading, Z, w, group == g, 0.05 * w.sum()) for g in np.unique(group)]
        squares = np.sum(((Z - np.concatenate([each.reshape(-1, outputs) for each in expected])) / scale) ** 2, axis=1)
        close(errors[:, width - 3], pooled(group, chooser, squares)[1][0], **solved(F, w, 0.05))


def test_the_width_is_chosen_by_groups():
    """Columns that tell the groups apart, and not the targets, help rows whose group is in and nobody else."""
    rng = np.random.default_rng(0)
    group = numbers([10] * 30)
    known, targets = rng.standard_normal((300, 3)), rng.standard_normal((30, 1))[group]
    F = np.concatenate([known, np.eye(30)[group] @ rng.standard_normal((30, 30))], axis=1)
    F = (F - F.mean(axis=0)) / F.std(axis=0)
    Z, w = targets + known[:, :1], np.ones(300)
    made, zbar = factors(F, Z, w, eigen=False)
    by_row = best_width(made, zbar, np.ones(1), lambda: iter([(F, Z, w, w, w)]), w, w, [1e-3], 1)
    mass = np.bincount(group).astype(float)
    by_group = best_width(made, zbar, np.ones(1), lambda: iter([(F, Z, w, w, w, group)]), mass, mass, [1e-3], 1)
    assert by_row[0] > 25
    assert by_group[0] <= 3


@pytest.mark.parametrize("size", [4, STACKED + 3, 60])
def test_what_only_a_group_knows_is_the_mean(size):
    """A column that is zero elsewhere, without a ridge: the other rows say nothing about the group."""
    rng = np.random.default_rng(0)
    group = numbers([size, 40, 40])
    F = np.stack([rng.standard_normal(len(group)), np.where(group == 0, rng.standard_normal(len(group)), 0.0)], axis=1)
    F, Z, w = F - F.mean(axis=0), rng.standard_normal((len(group), 2)), np.ones(len(group))
    F[:, 1] -= F[-1, 1]
    made, zbar = factors(F, Z, w, eigen=False)
    [each] = leave_one_out(made, [1e-13], zbar, lambda: iter([(F, Z, w, w, w, group)]))
    # the mean of numbers about 1 that nearly cancel
    close(each.outputs[:size], np.broadcast_to(zbar, (size, 2)), condition=1 / np.abs(zbar).max(), terms=len(group))
    assert np.isfinite(each.outputs).all()


def test_errors_of_a_group_are_not_many_opinions():
    rng = np.random.default_rng(0)
    group, ones = numbers([100] * 10), np.ones(1000)
    errors = rng.standard_normal(10)[group] ** 2
    outputs = rng.standard_normal((1000, 1))
    alone, grouped = Scored(outputs, outputs, ones, ones, ones), Scored(outputs, outputs, ones, ones, ones, group)
    assert grouped.n_choosers == 10
    close(grouped.standard_error(errors), 10 * alone.standard_error(errors))
    some = grouped.at(group < 3)
    assert some.n_choosers == 3
    assert len(some.outputs) == 300
