"""The plain linear model of the same rows, to hold a network against."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._arrays import Array, to_numpy
from .._base.saveable import check_shape, saveable
from .._data.rows import Rows
from .._data.targets import Numbers, Targets
from .._engine.pieces import Pieces
from .._engine.scaling import Squash
from .fit_output import HeadInput, OutputSpec
from .head import Head, LinearHead
from .network import FeatureCache, Network
from .solving import fit_output

MOST_WORK = 5e9
"""Products that a comparison is worth: rows times columns squared."""


@saveable
class LinearPeer(NamedTuple):
    """A ridge on the columns themselves, by leave-one-out on the rows that the network was scored on."""

    score: float
    gain: float
    """What the network's score has over it."""
    standard_error: float
    """Of the gain, row by row."""
    coef: np.ndarray | None = None
    """Its weights and what it adds, so that other rows can be asked about; None in files that older versions wrote."""
    intercept: np.ndarray | None = None

    def outputs(self, X: Array) -> np.ndarray:
        """What it says of rows without gaps."""
        assert self.coef is not None
        return to_numpy(X).astype(np.float64) @ self.coef + self.intercept

    def check_shapes(self, columns: int) -> None:
        """An error where the parts of one that was read do not fit together."""
        if self.coef is not None and self.intercept is not None:
            check_shape(self.coef, columns, *self.intercept.shape)


def is_linear(network: Network, head: Head, targets: Targets) -> bool:
    """Whether answers are a weighted sum of the columns."""
    curved = network.layers or network.others or isinstance(network.scaling, Squash | Pieces)
    curved = curved or getattr(targets, "curve", None) is not None
    return not curved and isinstance(head, LinearHead) and head.hidden is None


def linear_peer(network: Network, head: Head, rows: Rows, scored: Rows, targets: Targets) -> LinearPeer | None:
    """The linear model of the rows beside this network; None where there is nothing to compare, or it is too much
    work."""
    cheap = rows.in_memory and network.gauge is None and rows.n * rows.d**2 <= MOST_WORK
    if not cheap or not isinstance(head, LinearHead) or is_linear(network, head, targets):
        return None
    if not head.residuals().chooser.any():  # all rows are neurons: none says how good the network is
        return None
    plain = targets
    if isinstance(targets, Numbers):  # a linear model is one in the user's units
        scored = replace(scored, targets=targets.of_users(head.residuals()).targets)
        plain = replace(targets, curve=None)
    loo, as_they_are = head.residuals(), FeatureCache(Network(rows.space, rows.dtype))
    spread = np.std(loo.targets, axis=0)  # on whatever scale: it only weighs outputs against each other
    spec = OutputSpec("auto", np.where((spread > 0) & (rows.n_classes == 0), spread, 1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        found = fit_output(HeadInput(rows, scored, as_they_are, rows.d), None, np.zeros(scored.n, bool), spec)
        linear = found.residuals()._replace(chooser=loo.chooser)  # the same rows say how good it is
        gain = targets.merits(loo) - plain.merits(linear)
        score = plain.judged(linear)[1]
    if not np.isfinite(gain).all():
        return None
    mean = float(np.average(gain, weights=loo.chooser))
    coef, intercept = (to_numpy(part).astype(np.float64) for part in (found.output.coef, found.output.intercept))
    return LinearPeer(score, mean, loo.standard_error(gain), coef, intercept)
