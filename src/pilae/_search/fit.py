"""A network for the rows: chosen where that is asked for, then fitted once on all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._arrays import to_numpy
from .._base.scalars import is_integer, seed_of
from .._data.rows import Rows
from .._data.targets import check_target_size
from .._engine.moments import FLOAT32_RIDGE
from .._network import structure
from .._network.growth import too_few_rows
from .._network.head import EstimatorHead, LinearHead
from .._network.network import Network
from .._network.structure import Plan
from .._network.survey import SCORED_ROWS, Survey, scored_rows, survey
from .builder import HEAD_RIDGE, HEAD_RIDGE_ON_INPUT, Builder, Products, head_encoder_ridge, layer_ridge
from .choice import ENCODER_RIDGES, Search
from .rounds import LAST_ROUND, rows_of_last_round

FITTED_ROWS = 10_000
"""fit_rows="auto" tries to do with so many rows for the autoencoders, or ten for each column."""

FITTED_WIDTH = 1000
"""Neurons of the head that judges whether they are enough."""


@dataclass
class Result:
    """A fitted network and why it is what it is."""

    network: Network
    head: LinearHead | EstimatorHead
    table: list[dict[str, Any]] = field(default_factory=list)


def fit_network(params: Any, rows: Rows, y: np.ndarray | None, fit_params: dict) -> Result:
    """Choose a network for the rows, and fit it.

    Parameters
    ----------
    params : estimator
        Whose parameters (those of `PILAEClassifier`) say what to build and what to leave to the search.
    y, fit_params
        Targets and arguments for a head that is a scikit-learn estimator.
    """
    seed = seed_of(params.random_state)
    fixed_width = is_integer(params.head_width)
    wanted = int(params.head_width) if fixed_width else structure.HEAD_WIDTH_LIMIT
    capacity = max(wanted + 1, structure.width_bound(params.width, rows.d))  # pairs need one anchor more
    searching = params.depth == "auto" and params.growth == "loo" and structure.listed_widths(params.width) is None
    found = survey(
        rows,
        seed,
        params.anchors,
        capacity,
        scored_rows(wanted) if fixed_width else SCORED_ROWS,
        max(FITTED_ROWS, 10 * rows.d) if params.fit_rows == "auto" else params.fit_rows,
        rows_of_last_round if searching else None,
        searching or not fixed_width or params.growth != "loo",
        # asinh is not linear: the Gram of the raw columns says nothing about it
        params.input_scaling != "asinh" or params.head_width == "formula" or rows.dual,
        params.input_scaling,
    )
    if not rows.n_classes:
        check_target_size(to_numpy(found.targets.sizes()), rows.dtype)
    available = int(found.anchors.shape[0]) - (params.head_anchors == "pairs")
    if params.head == "shln" and fixed_width and wanted > available:
        raise too_few_rows(wanted, available, "head_width")
    if searching:
        plan, near, table = Search(params, rows, found, seed).run()
        rows.progress.end_of_stages()
    else:
        plan, near, table = _fixed_plan(params, found), None, []
    if params.fit_rows == "auto" and found.fitted is not None and not _half_is_enough(params, found.fitted, seed, plan):
        found = replace(found, fitted=None)
    builder = Builder(params, rows, found, seed, products=_products(params, rows, searching))
    grower = builder.grow(plan)
    if not searching and head_encoder_ridge(params) == "auto":
        seen = grower.depth == 0 or plan.skip  # the input itself is among what the head sees
        plan = plan._replace(encoder_ridge=HEAD_RIDGE_ON_INPUT if seen else HEAD_RIDGE)
    head = builder.head(grower, plan, y, fit_params, near)
    rows.passes = grower.passes
    return Result(builder.network(grower, plan), head, table)


def _half_is_enough(params: Any, rows: Rows, seed: int, plan: Plan) -> bool:
    """Whether layers fitted on half of a sample give the leave-one-out error of layers fitted on all of it, to within
    its standard error: then more rows than the sample would change less still."""
    if plan.depth == 0:
        return True
    width = min(FITTED_WIDTH, rows.n // 5)
    plan, capacity = plan._replace(head="shln"), max(width + 1, structure.width_bound(params.width, rows.d))
    errors = []
    for count in (rows.n // 2, None):
        found = survey(rows, seed, params.anchors, capacity, LAST_ROUND.scored, count)
        builder = Builder(params, rows, found, seed, hold=True)
        scores = builder.linear(builder.grow(plan), plan, width, params.ridge).output.loo
        errors.append(scores.row_errors(builder.scale))
    change = float(np.average(errors[0] - errors[1], weights=scores.chooser))
    return change < scores.standard_error(errors[1])


def _products(params: Any, rows: Rows, searching: bool) -> Products:
    """float32 for float32 rows where every encoder that reads the Gram has a ridge, and nothing depends on a rank."""
    exact = params.encoder != "rows" or structure.needs_rank(params.width) or params.growth != "loo"
    if rows.dtype != "float32" or exact:
        return Products()
    head = head_encoder_ridge(params)
    if params.head != "shln":
        head = 0.0
    elif head == "auto":
        head = ENCODER_RIDGES[-1] if searching else HEAD_RIDGE
    return Products(
        *("float32" if ridge >= FLOAT32_RIDGE else "float64" for ridge in (layer_ridge(params), float(head)))
    )


def _fixed_plan(params: Any, found: Survey) -> Plan:
    """What is built where nothing is searched: the parameters, and for each "auto" its rule."""
    listed = structure.listed_widths(params.width)
    depth = len(listed) if listed else params.depth
    if depth == "auto":
        depth = -1  # growth="rank" finds it
    ridge = HEAD_RIDGE if head_encoder_ridge(params) == "auto" else head_encoder_ridge(params)
    return Plan(
        input_scaling=structure.scaling_rule(params.input_scaling, found.moments.variance_a()),
        depth=depth,
        head=params.head if isinstance(params.head, str) else "estimator",
        encoder_ridge=float(ridge),
        neurons="rows" if params.head_anchors == "auto" else params.head_anchors,
        activation="relu" if params.head_activation == "auto" else params.head_activation,
        direct=False if params.direct_links == "auto" else bool(params.direct_links),
        skip=False if params.skip == "auto" else bool(params.skip),
        branches=1 if params.branches == "auto" else int(params.branches),
    )
