"""The choice of a network: its depth by leave-one-out, its head on the features found."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _check, structure
from .blocks import Rows
from .head import EstimatorHead, Hidden, LinearHead, fit_estimator_head, fit_hidden, fit_output
from .layer import LayerSpec
from .linalg import Gram, PrimalGram
from .loo import Scored
from .moments import Moments
from .network import LAYER_RIDGE, Grower, Network, Survey, input_gram, survey
from .scaling import Scaling

SCORED_ROWS = 5000
"""Rows scored by leave-one-out (all of them when there are fewer)."""

TRIAL_WIDTH = 500
"""Neurons of the output layers that are compared to find the depth."""

HEAD_RIDGE = 1e-6
"""encoder_ridge="auto" for the head's neurons on autoencoder features."""

HEAD_RIDGE_ON_INPUT = 1.0
"""encoder_ridge="auto" for the head's neurons on the input itself (depth 0)."""


def fit_network(
    params: Any, rows: Rows, y: np.ndarray, fit_params: dict
) -> tuple[Network, LinearHead | EstimatorHead, list[float]]:
    """Grow a network on the rows and fit its head.

    Parameters
    ----------
    params : estimator
        Whose parameters (those of `PILAEClassifier`) say what to build.
    y, fit_params
        Targets and arguments for a head that is a scikit-learn estimator.

    Returns
    -------
    network, head, squared leave-one-out error of each depth tried
    """
    seed = _check.seed_of(params.random_state)
    wanted = structure.HEAD_WIDTH_LIMIT if params.head_width == "auto" else int(params.head_width)
    capacity = max(wanted, TRIAL_WIDTH, structure.width_bound(params.width, rows.d))
    found = survey(rows, seed, params.anchors, capacity, SCORED_ROWS, params.fit_rows)
    if params.head == "shln" and params.head_width != "auto" and wanted > len(found.anchors):
        raise _check.too_few_rows(wanted, len(found.anchors), "head_width")
    ridge = LAYER_RIDGE if params.encoder_ridge == "auto" else float(params.encoder_ridge)
    spec = LayerSpec(params.encoder, ridge, params.activation, params.gain, params.decoder_ridge, False)
    grower = Grower(rows, found, spec, params.width, params.input_scaling)
    heads = _Heads(params, rows, found, seed)
    errors = _grow(grower, heads, params)
    head = heads.final(grower, y, fit_params)
    rows.passes = grower.passes
    return grower.network, head, errors


def _grow(grower: Grower, heads: _Heads, params: Any) -> list[float]:
    """Grow to the depth asked for or to the depth `growth` finds; the errors of the depths compared."""
    listed = structure.listed_widths(params.width)
    depth = len(listed) if listed else params.depth
    if depth != "auto":
        for _ in range(depth):
            grower.step()
        return []
    if params.growth != "loo":
        while grower.depth < params.max_depth and not grower.reached_full_rank(params.growth):
            grower.step()
        return []
    scores = heads.trial(grower)
    errors = [scores.squared_error(heads.scale)]
    while grower.depth < params.max_depth:
        before = grower.network, grower.gram, grower.moments
        grower.step()
        deeper = heads.trial(grower)
        errors.append(deeper.squared_error(heads.scale))
        if not deeper.beats(scores, heads.scale):
            grower.network, grower.gram, grower.moments = before
            break
        scores = deeper
    return errors


class _Heads:
    """Fits heads on a growing network: trials of modest width to compare depths, then the one that stays."""

    def __init__(self, params: Any, rows: Rows, found: Survey, seed: int) -> None:
        self.params, self.rows, self.found, self.seed = params, rows, found, seed
        self.scale = _target_scale(rows)
        self._input: tuple[Scaling | None, Gram] | None = None

    def trial(self, grower: Grower) -> Scored:
        """Leave-one-out of an output layer on the newest features."""
        head = self.params.head
        kind = head if isinstance(head, str) and head != "softmax" else "ridge"
        width = min(TRIAL_WIDTH, structure.head_width_rule(self.found.distinct))
        return self._linear(grower, kind, width, "auto", keep=False).output.loo

    def final(self, grower: Grower, y: np.ndarray, fit_params: dict) -> LinearHead | EstimatorHead:
        """The head asked for."""
        params = self.params
        if not isinstance(params.head, str) or params.head == "softmax":
            moments = self._feature_moments(grower) if params.head == "softmax" else None
            return fit_estimator_head(self.rows, grower.network, params.head, y, fit_params, moments)
        width = params.head_width
        if width == "auto":
            width = min(structure.head_width_rule(self.found.distinct), len(self.found.anchors))
        return self._linear(grower, params.head, width, params.ridge, keep=params.keep_statistics)

    def _linear(self, grower: Grower, kind: str, width: int, ridge: float | str, *, keep: bool) -> LinearHead:
        network = grower.network
        hidden = self._hidden(grower, width) if kind == "shln" else None
        assert self.found.scored is not None
        width = width if hidden else grower.features_width
        output = fit_output(
            self.rows,
            self.found.scored,
            network if hidden is None else lambda X: hidden(network(X)),
            width,
            ridge,
            scale=self.scale,
            keep=keep,
            label=f"output layer, {width} neurons",
        )
        return LinearHead(hidden, output)

    def _hidden(self, grower: Grower, width: int) -> Hidden:
        """Neurons on the newest features. Those of layers are standardised; raw input is only centred."""
        rows, network = self.rows, grower.network
        at_input = not network.layers
        moments = self.found.moments if at_input else grower.moments
        assert moments is not None
        if at_input:
            scaling, gram = self._at_input(grower)
        else:
            scaling = Scaling.standard(moments.mean_a, moments.variance_a())
            gram = PrimalGram(scaling.gram(moments.gram(centred=True)), moments.weight)
        ridge = self.params.encoder_ridge
        if ridge == "auto":
            ridge = HEAD_RIDGE_ON_INPUT if at_input else HEAD_RIDGE
        anchors = network(grower.anchors[:width, :])
        if scaling is not None:
            anchors = scaling(anchors)
        activation = "relu" if self.params.head_activation == "auto" else self.params.head_activation
        anchors = rows.space.asarray(anchors, "float64")
        return fit_hidden(rows, scaling, gram, anchors, float(ridge), activation, self.seed)

    def _at_input(self, grower: Grower) -> tuple[Scaling | None, Gram]:
        """The scaling of the input for the head and the spectrum of what it gives; found once."""
        if self._input is None:
            scaling = None if grower.standardised else Scaling.centring(self.found.moments.mean_a)
            self._input = scaling, input_gram(self.found, self.rows, grower.network.scaling or scaling)
        return self._input

    def _feature_moments(self, grower: Grower) -> Moments:
        """Moments of the newest features with their whole Gram."""
        if grower.network.layers and grower.moments is not None:
            return grower.moments
        moments = Moments(self.rows.space)
        for block in self.rows.blocks("features"):
            moments.add(grower.network(block.X), None, block.w)
        return moments


def _target_scale(rows: Rows) -> np.ndarray:
    """What one unit of error is, for each output: a standard deviation for targets or labels, 1 for classes."""
    if rows.targets is None:
        return np.ones(rows.n_targets)
    mean = np.average(rows.targets, axis=0, weights=rows.weight)
    spread = np.sqrt(np.average((rows.targets - mean) ** 2, axis=0, weights=rows.weight))
    return np.where(spread > 0, spread, 1.0)
