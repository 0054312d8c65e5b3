"""Growth layer by layer."""

from __future__ import annotations

from functools import partial
from typing import Any

from .._base.scalars import is_integer
from .._data.rows import Rows
from .._engine.linalg import DualGram, Gram, PrimalGram
from .._engine.moments import Moments
from .._engine.scaling import Scaling, Squash
from . import structure
from .layer import LayerSpec, fit_layer, output_moments
from .network import Network, Seen
from .survey import Survey

LAYER_RIDGE = 1e-3
"""encoder_ridge="auto" in autoencoder layers."""


def input_gram(found: Survey, rows: Rows, scaling: Scaling | None) -> Gram:
    """The spectrum of the raw (scaling None) or scaled input, without another pass in the primal form."""
    if rows.dual:
        block = rows.whole()
        return DualGram(block.X if scaling is None else scaling(block.X), block.w)
    G = found.moments.gram() if scaling is None else found.moments.gram(centred=True, scale=scaling.inverse)
    return PrimalGram(G, found.moments.weight, found.moments.product)


class Grower:
    """Grows a network layer by layer. `gram` and `moments` are always those of the newest features."""

    def __init__(
        self, rows: Rows, found: Survey, spec: LayerSpec, width: Any, input_scaling: str, product: str = "float64"
    ) -> None:
        self.all_rows = rows
        self.rows = rows if found.fitted is None else found.fitted
        self.found, self.spec, self.width = found, spec, width
        self.anchors = found.anchors
        variance = found.moments.variance_a()
        self.scaling_kind = structure.scaling_rule(input_scaling, variance)
        kinds = {"standard": Scaling.standard, "asinh": Squash.standard}
        make = kinds.get(self.scaling_kind)
        scaling = None if make is None else make(found.moments.mean_a, variance)
        self.network = Network(rows.space, rows.dtype, scaling, gauge=rows.gauge)
        self.seen = Seen(self.network)
        self.gram: Gram | None = None
        self.moments: Moments | None = None
        if self.scaling_kind == "asinh":  # not linear: the sums of the raw columns say nothing about these
            network = self.network
            self.moments = self.rows.total(
                partial(Moments, rows.space, product=product),
                lambda moments, block: moments.add(network(block.X), None, block.w, scratch=True),
                "asinh of the columns",
            )
            self.gram = PrimalGram(self.moments.gram(), self.moments.weight, self.moments.product)

    @property
    def depth(self) -> int:
        return len(self.network.layers)

    @property
    def features_width(self) -> int:
        return self.network.layers[-1].width if self.network.layers else self.rows.d

    @property
    def passes(self) -> int:
        """Passes over all rows and over the sample of them, if there is one."""
        return self.all_rows.passes + (0 if self.rows is self.all_rows else self.rows.passes)

    def step(self, *, last: bool = False, product: str = "float64") -> None:
        """Add one layer. `last` spares the pass over its output when nobody reads it; `product` is the dtype of the
        products of its Gram (see `Moments`)."""
        name = f"layer {self.depth + 1}"
        if self.gram is None:
            self.gram = input_gram(self.found, self.all_rows, self.network.scaling)
        width = self._next_width(self.gram, name)
        anchors = self.rows.space.asarray(self.network(self.anchors[:width, :]), "float64")
        target = structure.error_target(self.width)
        layer = fit_layer(self.rows, self.seen, self.gram, anchors, width, self.spec, name, target)
        self.network = self.network.grown(layer)
        self.moments, self.gram, below, self.seen = None, None, self.seen, Seen(self.network, self.rows)
        if not last or self.spec.keep_decoder:
            self.moments = output_moments(self.rows, below, layer, self.spec, name, product, self.seen.keep)
            self.gram = PrimalGram(self.moments.gram(), self.moments.weight, self.moments.product)

    def _next_width(self, gram: Gram, name: str) -> int:
        rank = gram.rank if structure.needs_rank(self.width) else 0
        width = structure.layer_width(self.width, self.depth, gram.size, rank)
        given = structure.listed_widths(self.width) or is_integer(self.width)
        if self.spec.encoder == "truncated" and not given:
            width = max(1, min(width, gram.rank))
        available = int(self.found.anchors.shape[0])
        if self.spec.encoder == "rows" and width > available:
            if given:
                raise too_few_rows(width, available, name)
            return available
        return width

    def reached_full_rank(self, growth: Any) -> bool:
        """The paper's criterion on the newest features; never before the first layer."""
        if self.gram is None or not self.network.layers:
            return False
        if self.rows is not self.all_rows:
            n_rows = self.rows.n
        else:
            n_rows = self.found.distinct if self.found.all_counted else self.rows.n
        return structure.full_rank(self.gram.rank, n_rows, growth)


def too_few_rows(width: int, available: int, what: str) -> ValueError:
    return ValueError(
        f"{what} asks for {width} neurons, but only {available} distinct rows of positive weight are available and "
        f"each neuron is one of them: give more rows or a width of at most {available}."
    )
