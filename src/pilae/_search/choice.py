"""The choice of a network by leave-one-out: a fixed, small set of candidates on a sample of rows.

Neurons are rows of one half, and what labels shape is shaped by that half alone; candidates are compared on rows of the
other (see `Halves`). Few rows are compared both ways round. A candidate that does worse than the mean on the rows that
are neurons is brittle: next to its own row a neuron says something wild, and new rows may come near.
"""

import math
from typing import NamedTuple

from .._data.halves import FEW_ROWS
from .._engine.pieces import Pieces
from .._network.metric import FULL_COLUMNS, NO_SHAPE, Shape
from .._network.radial import KERNELS
from .._network.structure import Plan, scaling_rule
from .averaging import Pair, second_network
from .candidates import Candidates, Row, best_of, is_shaped, measured, plan_of
from .search import loss_of
from .trial import Trial

FINALISTS = ((6, 2), (4, 1))
"""Candidates that come into the rounds after the first, and how many of a family."""

WORTH_A_LAYER = 0.98
"""Another layer is tried if the last one brought the lowest loss down to this share."""

ROWS_A_COLUMN = 2
"""Layers are tried on at least so many rows for each column."""

MOST_LINKS = 1000
"""No plain output layer is tried on more columns of all layers together."""

WORTH_REFINING = 1.2
"""A deeper network is refined if its loss is within this factor of the lowest so far."""

ENCODER_RIDGES = (math.inf, 10.0, 3.0, 1.0, 0.3, 0.1, 1e-2, 1e-4)

INPUT_RIDGES = (math.inf, 1.0)

FEATURE_RIDGES = (1.0, 0.1)
"""The first encoder ridges tried; from the best of them the search walks along ENCODER_RIDGES."""

ACTIVATIONS_TRIED = ("relu", "relu2", "sigmoid")

LENGTHS = (0.3, 1.0, 3.0, 10.0)
"""Of radial neurons, in median distances: the first tried is the second."""

MOST_ROUNDS = 4
"""Of learning a metric."""

WORTH_A_ROUND = 0.99
"""Another round of learning a metric is tried if the last one brought the loss down to this share."""

WORTH_SHAPING = 2.0
"""A family of neurons gets a metric from the labels if its loss is within this factor of the lowest so far."""


def options(choice: object, values: tuple) -> tuple:
    """The values to try: all of them, or the user's choice."""
    return values if choice is None else (choice,)


class Choice(NamedTuple):
    """What a search ends with."""

    plan: Plan
    near: float | None = None
    """The output ridge that was best."""
    shape: Shape = NO_SHAPE
    """What labels said of the neurons."""
    optimism: float = 0.0
    """What of a score is the luck of having been chosen."""
    table: list[Row] = []  # noqa: RUF012  (of a tuple: nobody adds to it)
    untried: list[Row] = []  # noqa: RUF012
    """What there was no time for, as rows of the table."""
    second: "Choice | None" = None
    """Another network, for the mean of both, and the optimism of that."""

    @property
    def shaped(self) -> bool:
        """Whether labels shaped any of its networks."""
        return self.plan.rounds > 0 or (self.second is not None and self.second.shaped)


class NetworkSearch(Candidates):
    """Which candidates, in which order: from what is simple to what is near the best so far."""

    _given: Plan | None = None
    """The one plan that needs a metric, where nothing else is searched."""
    _entering: list[Row] = []  # noqa: RUF012  (replaced by each later round)
    """The best few of the round before."""

    def run(self) -> Choice:
        self.go()
        for size, finalists in zip(self.later, FINALISTS[len(FINALISTS) - len(self.later) :], strict=True):
            best = self.finalists(*finalists)
            if self.budget.used_up:
                self.untried += [(self.round + 1, row["plan"]) for row in best]
                break
            self._next_round(self.trial_of(size), best)
        return self._result()

    def run_with(self, plan: Plan) -> Choice:
        """The same of one plan that needs nothing but a metric."""
        self._given, self.rounds = plan, 1
        self.go()
        return self._result()

    def walk(self) -> None:
        if self._given is not None:
            self._metrics(self._given)
        elif self.round == 1:
            self._first_round()
        else:
            self._later_round()

    def _result(self) -> Choice:
        chosen, second = self.winner(), None
        optimism = self.optimism(chosen, self.spec.seed)  # before there are pairs among the candidates
        plan = second_network(self, chosen)
        if plan is not None:
            row, luck = self.row_of(plan), self.optimism(Pair(chosen, plan), self.spec.seed)
            assert row is not None
            second = Choice(plan, row["ridge"], self.trial.shape(plan), luck)
        table = self.finished(chosen)
        near = next((row["ridge"] for row in table if row["chosen"]), None)
        return Choice(chosen, near, self.trial.shape(chosen), optimism, table, self.left(), second)

    def alternative(self, row: Row) -> Choice:
        """Another row of the table as a choice."""
        plan = plan_of(row)
        return Choice(plan, row["ridge"], self.trial.shape(plan))

    def may_win(self, plan: Plan) -> bool:
        """A metric that was asked for is not left out."""
        return not self.spec.head.shaped or plan.rounds > 0

    def _first_round(self) -> None:
        kinds = self._scalings()
        hidden = self.spec.head.kind == "shln" and self.spec.head.anchors != "radial"
        ridges = options(self.spec.head.encoder_ridge, INPUT_RIDGES)
        for kind in [kind for kind in kinds if kind == "pieces" or kind == kinds[0]] if hidden else kinds:
            self._plain(kind, 0)
        for kind in kinds if hidden else ():
            self._neurons(kind, 0, ridges[:1], walk=False)
        if self.directed(0):
            kind = best_of(self.directed(0)).input_scaling
            if kind == "asinh" and kind != kinds[0]:
                self._plain(kind, 0)  # standardised columns give what raw ones give: the output layer does that itself
            self._activations()
            self._neurons(kind, 0, ridges, walk=self.free)
            self._activations()
            self._refine(0)
        self._radial(kinds)
        self._shaped()
        kind = self._for_layers(kinds)
        deepest = self.spec.max_depth if self.trial.rows.d <= self.trial.survey.distinct / ROWS_A_COLUMN else 0
        for depth in range(1, deepest + 1):  # one layer at a time, with the scaling that was best
            before = min(map(loss_of, self.sound()), default=math.inf)
            self._plain(kind, depth)
            if hidden:
                self._neurons(kind, depth, options(self.spec.head.encoder_ridge, FEATURE_RIDGES), walk=self.free)
            self._refine(depth)
            if min(map(loss_of, self.sound()), default=math.inf) > WORTH_A_LAYER * before:
                break

    def _for_layers(self, kinds: tuple[str, ...]) -> str:
        """The best scaling for autoencoders: ramps of a column say one thing many times."""
        rows = [row for row in self.sound() if row["plan"].input_scaling != "pieces" or len(kinds) == 1]
        return best_of(rows).input_scaling if rows else kinds[0]

    def _scalings(self) -> tuple[str, ...]:
        if self.spec.input_scaling != "auto":
            return (self.spec.input_scaling,)
        # asinh needs the d x d Gram of its own columns: not for data with more columns than rows
        few = self.trial.survey.distinct < self.trial.rows.d
        asinh: tuple[str, ...] = () if few else ("asinh",)
        in_pieces = not few and isinstance(self.trial.scalings("pieces"), Pieces)
        pieces: tuple[str, ...] = ("pieces",) if in_pieces else ()
        if self.spec.head.kind == "shln":
            return ("none", "standard", *asinh, *pieces)
        # judged by plain ridge, to which raw and standardised columns are the same
        return (scaling_rule("auto", self.trial.survey.moments.variance_a()), *asinh, *pieces)

    def _next_round(self, trial: Trial, best: list[Row]) -> None:
        """The best few again. A round that was cut short before it came to the best of the last one decides nothing."""
        before, self.trials, self.best, self.round = self.best, [trial], None, self.round + 1
        self._entering = best
        self.go()
        if self.stopped and before is not None and self.row_of(before[0]) is None:
            self.best, self.round = before, self.round - 1
        self.best = self.best or before  # where all are brittle now

    def _later_round(self) -> None:
        """The simpler ones first; wider layers on more rows can do with smaller encoder ridges and more rounds of the
        metric, so these are followed from the best."""
        losses = {row["plan"]: self.loss(row["plan"], row["ridge"]) for row in self._entering}
        for plan in sorted(losses, key=losses.__getitem__)[:2]:
            near = next(row["ridge"] for row in self._entering if row["plan"] == plan)
            self._smaller_ridges(plan, losses[plan], near)
        self._taught_again()
        self._shape_winner()

    def _taught_again(self) -> None:
        """The best metric learnt once more from what this round has, more rows and neurons: round after round."""
        shaped = [row for row in self.sound() if row["round"] == self.round and row["plan"].rounds]
        if self.near(shaped, WORTH_REFINING):
            plan = best_of(shaped)._replace(taught=self.round)
            loss = min(map(loss_of, shaped))
            for rounds in range(1, MOST_ROUNDS + 1):
                before, loss = loss, self.loss(plan._replace(rounds=rounds))
                if rounds > 1 and not loss < WORTH_A_ROUND * before:
                    break

    def _shape_winner(self) -> None:
        """A metric for the best so far, where it is neurons of a direction on the input and has none yet, and none of
        its relatives has been beaten with one in this round. Features of layers are not those of the layers on all
        rows, and a metric of theirs would be another's."""
        if self.best is not None and self._may_shape:
            plan = self.best[0]
            relatives = [row for row in self.sound() if row["round"] == self.round and is_shaped(row["plan"], plan)]
            if plan.head == "shln" and not measured(plan) and plan.depth == 0 and not relatives:
                diagonal = self.spec.head.metric == "diagonal"
                self._more_rounds(plan._replace(rounds=1, diagonal=diagonal, taught=self.round))

    @property
    def _may_shape(self) -> bool:
        return self.spec.head.kind == "shln" and self.spec.head.metric != "inputs" and self.halves is not None

    def _smaller_ridges(self, plan: Plan, loss: float, near: float) -> None:
        """Of the encoder, as long as that helps."""
        while self.free and plan.head == "shln" and not measured(plan) and plan.encoder_ridge in ENCODER_RIDGES[:-1]:
            plan = plan._replace(encoder_ridge=ENCODER_RIDGES[ENCODER_RIDGES.index(plan.encoder_ridge) + 1])
            before, loss = loss, self.loss(plan, near)
            if loss >= before:
                break

    def _plain(self, scaling: str, depth: int) -> None:
        """No hidden neurons. Heads other than "shln" are judged by this alone; a given width wants neurons."""
        head = self.spec.head
        if head.kind != "shln" or (head.width is None and not head.formula):
            skips = (False, True) if depth and self._may_skip(scaling, depth) else (False,)
            for skip in options(self.spec.skip, skips) if depth else skips:
                branches = self.spec.branches if depth else 1
                self.loss(Plan(scaling, depth, "ridge", skip=skip, branches=branches))

    def _may_skip(self, scaling: str, depth: int) -> bool:
        return self._unseen(Plan(scaling, depth)) or self.trial.grown(scaling, depth).all_widths <= MOST_LINKS

    def _unseen(self, plan: Plan) -> bool:
        """Whether a look ahead asks for layers that nobody has grown yet: it grows none."""
        return self._known is not None and not self.trial.has_grown(plan)

    def _neurons(self, scaling: str, depth: int, ridges: tuple[float, ...], *, walk: bool) -> None:
        """Hidden neurons with these encoder ridges, then with their neighbours as long as that helps."""
        plan = self.spec.plan(scaling, depth, "shln")
        if self.directed(max(depth - 1, 0)):
            below = best_of(self.directed(max(depth - 1, 0)))
            plan = plan._replace(activation=below.activation, neurons=below.neurons)

        def loss(ridge: float) -> float:
            return self.loss(plan._replace(encoder_ridge=ridge))

        best = min(ridges, key=loss)
        while walk and (depth == 0 or self.near(self.directed(depth), WORTH_REFINING)):
            k = ENCODER_RIDGES.index(best)
            before, best = best, min(ENCODER_RIDGES[max(k - 1, 0) : k + 2], key=loss)
            if best == before:
                break

    def _radial(self, kinds: tuple[str, ...]) -> None:
        """Neurons of a distance on the input, then other lengths and the other kind as long as that helps."""
        head = self.spec.head
        kernels = [name for name in options(head.activation, KERNELS) if name in KERNELS]
        if head.kind != "shln" or head.anchors not in (None, "radial") or not kernels:
            return
        plan = self.spec.plan(kinds[0], 0, "shln")._replace(neurons="radial", activation=kernels[0])
        length = options(head.length, LENGTHS[1:2])[0]
        scalings = {"standard", "pieces", best_of(self.sound()).input_scaling if self.sound() else kinds[0]}
        for kind in [kind for kind in kinds if kind in scalings]:
            self.loss(plan._replace(input_scaling=kind, length=length))
        for kernel in kernels:
            if not self.radial():
                return
            best = best_of(self.radial())._replace(activation=kernel)
            if head.length is None:
                self._lengths(best)
            else:
                self.loss(best)
        if not self.near(self.radial(), WORTH_REFINING):
            return
        best = best_of(self.radial())
        for direct in options(head.direct, self._links(best)):
            self.loss(best._replace(direct=direct))

    def _shaped(self) -> None:
        """A metric from the labels for each family of neurons on the input that comes near the best."""
        if not self._may_shape:
            return
        for rows in (self.directed(0), self.radial()):
            if self.near(rows, WORTH_SHAPING) or (rows and self.spec.head.shaped):
                self._metrics(best_of(rows))
            whole = [row for row in rows if row["plan"].input_scaling != "pieces"]
            if len(whole) < len(rows) and self.near(whole, WORTH_SHAPING):  # a metric may do what ramps do
                diagonal = self.spec.head.metric == "diagonal"
                self._more_rounds(best_of(whole)._replace(rounds=1, diagonal=diagonal))

    def _metrics(self, plan: Plan) -> None:
        """Full and diagonal, each with the power that suits it most often, the better one with the other power too;
        then more rounds of the best. Of few rows, whose choice is noise, two."""
        columns = self.trial.rows.d
        if not self._unseen(plan):
            columns = self.trial.input(self.trial.grown(plan.input_scaling, plan.depth), plan).columns
        only_diagonal = self.spec.head.metric == "diagonal" or columns > FULL_COLUMNS
        of_diagonal = 1.0 if plan.neurons == "radial" else 0.5
        kinds = ((True, of_diagonal),) if only_diagonal else ((False, 0.5), (True, of_diagonal))
        best = min((plan._replace(rounds=1, diagonal=d, power=p) for d, p in kinds), key=self.loss)
        if only_diagonal or self.whole.survey.distinct >= FEW_ROWS:
            best = min(best, best._replace(power=1.5 - best.power), key=self.loss)
        self._more_rounds(best)

    def _more_rounds(self, plan: Plan) -> None:
        """As long as that helps."""
        loss = self.loss(plan)
        while plan.rounds < MOST_ROUNDS:
            plan = plan._replace(rounds=plan.rounds + 1)
            before, loss = loss, self.loss(plan)
            if not loss < WORTH_A_ROUND * before:
                break

    def _lengths(self, plan: Plan) -> None:
        """From the plan's own length to longer ones as long as that helps; if it does not, to shorter ones."""
        start, lowest, longer = LENGTHS.index(plan.length or 1.0), self.loss(plan), False
        for way in (LENGTHS[start + 1 :], LENGTHS[:start][::-1]):
            for length in () if longer else way:
                loss = self.loss(plan._replace(length=length))
                if not loss < lowest:
                    break
                lowest, longer = loss, True

    def _activations(self) -> None:
        """Other activations of the best hidden layer on the input."""
        for activation in options(self.spec.head.activation, ACTIVATIONS_TRIED):
            best = best_of(self.directed(0))
            if activation == "sigmoid" and best.activation == "relu2":
                continue  # it tames what relu2 stretches, and that helped
            self.loss(best._replace(activation=activation))

    def _refine(self, depth: int) -> None:
        """From the best hidden layer of this depth: pairs of anchors, or all layers; direct links."""
        if not self.near(self.directed(depth), WORTH_REFINING):
            return
        if depth == 0:  # deeper layers inherit that
            self._vary(0, "neurons", options(self.spec.head.anchors, ("rows", "pairs")))
        else:
            self._vary(depth, "skip", options(self.spec.skip, (False, True)))
        self._vary(depth, "direct", options(self.spec.head.direct, self._links(best_of(self.directed(depth)))))

    def _links(self, plan: Plan) -> tuple[bool, ...]:
        """Whether to try direct links: so many columns are no hidden layer's work."""
        if self._unseen(plan):
            return (False, True)
        wide = self.trial.grown(plan.input_scaling, plan.depth).features_width > 3 * self.trial.width
        return (False,) if wide else (False, True)

    def _vary(self, depth: int, name: str, values: tuple) -> None:
        for value in values:
            self.loss(best_of(self.directed(depth))._replace(**{name: value}))
