"""The plain linear model of the same rows, to hold a network against."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._base.saveable import saveable
from .._data.rows import Rows
from .._data.targets import Numbers, Targets
from .._engine.pieces import Pieces
from .._engine.scaling import Squash
from .fit_output import HeadInput, OutputSpec, fit_output
from .head import Head, LinearHead
from .network import FeatureCache, Network

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
    return LinearPeer(score, mean, loo.standard_error(gain))
