"""Growth layer by layer."""

import time
from dataclasses import replace
from functools import partial

import numpy as np

from .._arrays import Array, to_numpy
from .._data.intake import Intake
from .._data.rows import Block, Rows
from .._engine.linalg import DualGram, Gram, PrimalGram
from .._engine.moments import Moments
from .._engine.pieces import pieces_for
from .._engine.scaling import Scaling, Squash
from .layer import Layer, LayerSpec, decoder_with_bias, fit_layer
from .network import FeatureCache, Network
from .structure import CURVED, RANK_TOLERANCE, WidthRule, scaling_rule
from .survey import Survey


def input_gram(survey: Survey, rows: Rows, scaling: Scaling | None) -> Gram:
    """The spectrum of the raw (scaling None) or scaled input, without another pass in the primal form."""
    if rows.dual:
        block = rows.whole()
        return DualGram(block.X if scaling is None else scaling(block.X), block.w)
    return primal_gram(survey.moments, scaling)


def primal_gram(moments: Moments, scaling: Scaling | None = None) -> PrimalGram:
    """The spectrum of what was summed, or of the same under a scaling."""
    G = moments.gram() if scaling is None else moments.gram(centred=True, scale=scaling.inverse)
    return PrimalGram(G, moments.weight, moments.product)


class Scalings:
    """Input scalings by name, from one survey: whatever part of its rows is looked at later sees the same columns."""

    def __init__(self, survey: Survey, intake: Intake | None = None) -> None:
        self.survey, self.intake = survey, intake
        self._made: dict[str, Scaling | None] = {"none": None}

    def __call__(self, kind: str) -> Scaling | None:
        if kind not in self._made:
            self._made[kind] = self._make(kind)
        return self._made[kind]

    def _make(self, kind: str) -> Scaling | None:
        mean, variance = self.survey.moments.mean_a, self._together(self.survey.moments.variance_a())
        if kind == "pieces":
            sample = self.survey.scored
            found = pieces_for(mean, variance, to_numpy(sample.whole().X), sample.weight)
            return found or Scaling.standard(mean, variance)
        return (Squash if kind == "asinh" else Scaling).standard(mean, variance)

    def _together(self, variance: Array) -> Array:
        """Variances that columns are scaled by: the categories of a column share one, that of all of them together, so
        that the column weighs as much as one of numbers, and a rare category is not made as loud as a frequent one."""
        intake = self.intake
        if intake is None or not intake.categories:
            return variance
        shared, start = to_numpy(variance).copy(), len(intake.numeric)
        for each in intake.categories:
            own = slice(start, start + each.width)
            shared[own] = np.where(shared[own] > 0, shared[own].sum(), 0.0)
            start = own.stop
        return self.survey.scored.space.asarray(shared)


class Grower:
    """Grows a network layer by layer. `gram` and `moments` are always those of the newest features."""

    def __init__(
        self,
        rows: Rows,
        survey: Survey,
        spec: LayerSpec,
        width: WidthRule,
        scaling: str,
        product: str = "float64",
        scalings: Scalings | None = None,
    ) -> None:
        self.all_rows, self.rows = rows, survey.fitted
        self.survey, self.spec, self.width = survey, spec, width
        self.scaling_kind = scaling_rule(scaling, survey.moments.variance_a())
        input_scaling = (scalings or Scalings(survey))(self.scaling_kind)
        self.network = Network(rows.space, rows.dtype, input_scaling, gauge=rows.gauge)
        self.cache = FeatureCache(self.network)
        self.gram: Gram | None = None
        self.moments: Moments | None = None
        if self.scaling_kind in CURVED:
            self.moments = self.network.moments(self.rows, f"{self.scaling_kind} of the columns", product)
            self.gram = primal_gram(self.moments)

    @property
    def depth(self) -> int:
        return len(self.network.layers)

    @property
    def features_width(self) -> int:
        return self.network.layers[-1].width if self.network.layers else self.network.scaled_width(self.rows.d)

    @property
    def all_widths(self) -> int:
        """Columns of the scaled input and of all layers."""
        return self.network.scaled_width(self.rows.d) + sum(layer.width for layer in self.network.layers)

    @property
    def passes(self) -> int:
        """Passes over all rows and over the sample of them, if there is one."""
        return self.all_rows.passes + (0 if self.rows is self.all_rows else self.rows.passes)

    def step(self, *, last: bool = False, product: str = "float64") -> None:
        """Add one layer. `last` spares the pass over its output when nobody reads it; `product` is the dtype of the
        products of its Gram (see `Moments`)."""
        name = f"layer {self.depth + 1}"
        if self.gram is None:
            self.gram = input_gram(self.survey, self.all_rows, self.network.scaling)
        width = self._next_width(self.gram, name)
        rows, start, passes = self.rows, time.perf_counter(), self.rows.passes
        anchors = rows.space.asarray(self.network(self.survey.anchors[:width, :]), "float64")
        layer = fit_layer(rows, self.cache, self.gram, anchors, width, self.spec, name, self.width.target)
        below, self.network = self.cache, replace(self.network, layers=[*self.network.layers, layer])
        self.moments, self.gram, self.cache = None, None, FeatureCache(self.network, rows)
        if not last or self.spec.keep_decoder:
            self._sum_features(below, layer, f"{name}: features", product)
        layer.seconds, layer.passes = time.perf_counter() - start, rows.passes - passes

    def _sum_features(self, below: FeatureCache, layer: Layer, label: str, product: str) -> None:
        """The next layer's Gram, and the decoder that is kept, in one pass over the newest features."""
        keep_decoder, keep = self.spec.keep_decoder, self.cache.keep

        def add(moments: Moments, block: Block) -> None:
            X = below(block)
            H = layer(X)
            keep(block, H)
            moments.add(H, X if keep_decoder else None, block.w, scratch=True)

        empty = partial(Moments, self.rows.space, product=product)
        self.moments = moments = self.rows.total(empty, add, label, layer.width)
        self.gram = primal_gram(moments)
        if keep_decoder:
            layer.decoder, layer.decoder_bias = decoder_with_bias(moments, self.spec.decoder_ridge, self.rows.dtype)

    def _next_width(self, gram: Gram, name: str) -> int:
        width = self.width.neurons(self.depth, gram.size, gram.rank if self.width.kind == "rank" else 0)
        rows = self.spec.encoder == "rows"
        available = int(self.survey.anchors.shape[0]) if rows else max(1, gram.rank)
        if rows and self.width.fixed and width > available:
            raise too_few_rows(width, available, name)
        return width if self.width.fixed else min(width, available)

    def reached_full_rank(self, growth: str | float) -> bool:
        """The paper's criterion on the newest features, ||H^+ H - I||^2 < eps; never before the first layer.

        H^+ H is a projector of rank r, so the norm is exactly N - r.
        """
        if self.gram is None or not self.network.layers:
            return False
        counted = self.rows is self.all_rows and self.survey.all_counted
        n_rows = self.survey.distinct if counted else self.rows.n
        tolerance = RANK_TOLERANCE if isinstance(growth, str) else float(growth)
        return n_rows - self.gram.rank <= tolerance * n_rows


def too_few_rows(width: int, available: int, what: str) -> ValueError:
    return ValueError(
        f"{what} asks for {width} neurons, but only {available} distinct rows of positive weight are available and "
        f"each neuron is one of them: give more rows or a width of at most {available}."
    )
