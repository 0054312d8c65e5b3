"""A network for the rows: chosen where that is asked for, then fitted once on all of them."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._arrays import to_numpy
from .._arrays.threads import in_turn
from .._base.budget import active_budget
from .._data.halves import Halves, halves_of, judging_rows, remembered
from .._data.labels import check_target_size
from .._data.rows import Rows
from .._engine.moments import FLOAT32_RIDGE
from .._engine.scaling import Extent
from .._engine.scores import Scored
from .._network.growth import Scalings, too_few_rows
from .._network.head import Head, LinearHead
from .._network.importance import importances
from .._network.network import Network
from .._network.structure import CURVED, Plan, scaling_rule, width_limit
from .._network.survey import SCORED_ROWS, Survey, SurveySpec, scored_rows, survey_rows
from .builder import Builder, Products
from .candidates import LAST_ROUND, rounds_for
from .choice import ENCODER_RIDGES, Choice, NetworkSearch
from .promise import averaged, kept
from .search import Merits
from .spec import HEAD_RIDGE, HEAD_RIDGE_ON_INPUT, Spec
from .trial import Sampled

FITTED_ROWS = 10_000
"""fit_rows="auto" tries to do with so many rows for the autoencoders, or ten for each column."""

HELD_BYTES = 2**32
"""Of a source whose rows are fewer than its columns so much is held, where nothing but a ridge is wanted."""

FITTED_WIDTH = 1000
"""Neurons of the head that judges whether they are enough."""


class Result(NamedTuple):
    """A fitted network and why it is what it is."""

    network: Network
    head: Head
    table: list[dict[str, Any]]
    halves: Halves | None
    """Which rows its labels shaped it with, where they did."""
    importances: np.ndarray | None
    """Of the columns."""
    optimism: float
    """What of its score is the luck of having been chosen."""
    judging: Scored | None
    """Leave-one-out results of the rows that judge, the same whatever was chosen."""
    judges: np.ndarray
    """The numbers of these rows."""
    scored: Rows
    """Rows that its leave-one-out results are of."""
    extent: Extent
    """The range of each column."""
    reach: Extent | None
    """Of each target, where these are numbers."""
    spread: np.ndarray
    """The standard deviation of each column."""
    means: np.ndarray
    """Of the columns, as they came."""


def fit_network(spec: Spec, rows: Rows, y: np.ndarray | None, fit_params: dict, merits: Merits | None = None) -> Result:
    """Choose a network for the rows, and fit it.

    `y` and `fit_params` are targets and arguments for a head that is a scikit-learn estimator; `merits` say what each
    row adds to the score.
    """
    survey = _surveyed(spec, rows)
    scalings, halves = Scalings(survey, rows.intake), None
    if spec.searching or spec.shaping or spec.anchors == "spread":  # what is found can be given: the same anchors
        halves = halves_of(survey.scored, survey.distinct, spec.seed)
    if halves is None and spec.head.shaped:
        raise ValueError(
            f"SHLN(metric={spec.head.metric!r}) learns from one half of the rows and is judged by the other, and of "
            f"{survey.distinct} distinct rows too few are in a class of at least four: give more rows, or use "
            "metric='inputs'."
        )
    searching = spec.searching and not is_linear(spec, rows)
    if searching or spec.shaping:
        search = NetworkSearch(spec, Sampled(rows, survey, halves, scalings), merits)
        with in_turn(rows.n * rows.d):
            choice = search.run() if searching else search.run_with(_given_plan(spec, survey))
        if active_budget().used_up:
            choice = choice._replace(second=None)  # to fit the best one takes its own time; another would take it twice
        rows.progress.end_of_stages()
    else:
        choice = Choice(_given_plan(spec, survey))
    plan = choice.plan
    if halves is not None and choice.shaped:  # rows that shaped the network are never scored
        survey = replace(survey, scored=judging_rows(survey.scored, halves))
    if (
        spec.fit_rows == "auto"
        and survey.fitted is not rows
        and not _half_is_enough(spec, survey.fitted, plan, scalings)
    ):
        survey = replace(survey, fitted=rows)
    builder = Builder(spec, rows, survey, products=_products(spec, rows), halves=halves, scalings=scalings)
    grower = builder.grow(plan)
    if plan.depth < 0 and grower.depth == 0:
        plan = _with_ridge(spec, plan._replace(depth=0))
    head = builder.head(grower, plan, y, fit_params, choice.near, choice.shape)
    if searching and isinstance(head, LinearHead):
        before = choice.shaped
        choice, grower, head = kept(builder, choice, grower, head, search.alternative)
        if halves is not None and choice.shaped and not before:  # another has taken its place
            survey = replace(survey, scored=judging_rows(survey.scored, halves))
        plan = choice.plan
    network = builder.network(grower, plan)
    if choice.second is not None and isinstance(head, LinearHead):
        choice, network, head = averaged(builder, choice, network, head)
    rows.passes = grower.passes
    return _with_judgement(builder, survey, choice, network, head)


def _with_judgement(builder: Builder, survey: Survey, choice: Choice, network: Network, head: Head) -> Result:
    """What is known of a network and its head, which are fitted now."""
    moved = judging = None
    judges, halves = np.zeros(0, np.int64), builder.halves
    if isinstance(head, LinearHead):
        moved = importances(network, head, survey.scored, builder.scale, builder.spec.seed)
        judging = builder.judging(head)
        asked = builder.survey.scored
        judges = (np.arange(asked.n) if asked.numbers is None else asked.numbers)[builder.judges]
    halves = remembered(halves, survey.searched) if halves is not None and choice.shaped else None
    means = network.undo_gauge(to_numpy(survey.moments.mean_a))
    table = choice.table + choice.untried
    spread = np.sqrt(to_numpy(survey.moments.variance_a()))
    found = (table, halves, moved, choice.optimism, judging, judges, survey.scored)
    return Result(network, head, *found, survey.extent, survey.reach, spread, means)


def _surveyed(spec: Spec, rows: Rows) -> Survey:
    """The first pass, for all that this network needs of it."""
    head, fixed = spec.head, spec.head.width is not None
    width = head.width or width_limit(rows.space)
    most = max(width, LAST_ROUND.width if spec.searching or spec.shaping else 0)
    linear = is_linear(spec, rows)
    survey_spec = SurveySpec(
        spec.seed,
        spec.anchors,
        # one half of them shapes; pairs need one anchor more
        2 if linear else max(2 * (most + 1), spec.width.bound(rows.d)),
        scored_rows(width) if fixed else SCORED_ROWS,
        fit_rows=max(FITTED_ROWS, 10 * rows.d) if isinstance(spec.fit_rows, str) else spec.fit_rows,
        search_rows=(lambda n: rounds_for(n, rows.d)[-1].rows) if spec.searching or spec.shaping else None,
        count_all=spec.searching or not fixed or spec.growth != "loo",
        # asinh is not linear: the Gram of the raw columns says nothing about it
        gram=spec.input_scaling not in CURVED or head.formula or rows.dual,
        input_scaling=spec.input_scaling,
        linear=linear,
    )
    survey = survey_rows(rows, survey_spec)
    if not rows.n_classes:
        check_target_size(to_numpy(survey.targets.sizes()), rows.dtype)
    available = int(survey.anchors.shape[0]) - (head.anchors == "pairs")
    if head.kind == "shln" and fixed and width > available:
        raise too_few_rows(width, available, "SHLN(width=...)")
    return survey


def is_linear(spec: Spec, rows: Rows) -> bool:
    """Whether there is nothing to choose but a ridge: no hidden neurons, and no layers on more columns than rows."""
    given = spec.depth in (None, 0) and spec.growth == "loo" and spec.width.listed is None
    curved, held = spec.input_scaling in CURVED, rows.in_memory or 8 * rows.n * rows.d <= HELD_BYTES
    return given and not curved and spec.head.kind == "ridge" and rows.n < rows.d and held


def _given_plan(spec: Spec, survey: Survey) -> Plan:
    """What was asked for; growth="rank" finds the depth that is not given (-1)."""
    depth = len(spec.width.listed) if spec.width.listed else spec.depth
    if depth is None and spec.searching:  # and there is nothing to search
        depth = 0
    scaling = scaling_rule(spec.input_scaling, survey.moments.variance_a())
    return _with_ridge(spec, spec.plan(scaling, -1 if depth is None else depth, spec.head.kind))


def _with_ridge(spec: Spec, plan: Plan) -> Plan:
    """With the encoder ridge of a head that nobody searches for."""
    if spec.head.encoder_ridge is not None:
        return plan
    on_input = plan.depth == 0 or plan.skip  # the input itself is among what the head sees
    return plan._replace(encoder_ridge=HEAD_RIDGE_ON_INPUT if on_input else HEAD_RIDGE)


def _half_is_enough(spec: Spec, rows: Rows, plan: Plan, scalings: Scalings) -> bool:
    """Whether layers fitted on half of a sample give the leave-one-out error of layers fitted on all of it, to within
    its standard error: then more rows than the sample would change less still."""
    if plan.depth == 0:
        return True
    width = min(FITTED_WIDTH, rows.n // 5)
    plan, capacity = plan._replace(head="shln"), max(width + 1, spec.width.bound(rows.d))
    scores: list[Scored] = []
    for count in (rows.n // 2, None):
        survey = survey_rows(rows, SurveySpec(spec.seed, spec.anchors, capacity, LAST_ROUND.scored, count))
        builder = Builder(spec, rows, survey, hold=True, scalings=scalings)
        scores.append(builder.linear(builder.grow(plan), plan, width).residuals())
    half, all_ = (each.row_errors(builder.scale) for each in scores)
    return float(np.average(half - all_, weights=scores[1].chooser)) < scores[1].standard_error(all_)


def _products(spec: Spec, rows: Rows) -> Products:
    """float32 for float32 rows where every encoder that reads the Gram has a ridge, and nothing depends on a rank."""
    ranked = spec.width.kind == "rank" or spec.growth != "loo"
    if rows.dtype != "float32" or spec.layer.encoder != "rows" or ranked:
        return Products()
    head = spec.head.encoder_ridge
    if spec.head.kind != "shln":
        head = 0.0
    elif head is None:
        head = ENCODER_RIDGES[-1] if spec.searching else HEAD_RIDGE
    return Products(*("float32" if ridge >= FLOAT32_RIDGE else "float64" for ridge in (spec.layer.encoder_ridge, head)))
