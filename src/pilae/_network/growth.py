"""Growth layer by layer."""

from functools import partial

from .._data.rows import Rows
from .._engine.linalg import DualGram, Gram, PrimalGram
from .._engine.moments import Moments
from .._engine.scaling import Scaling, Squash
from . import structure
from .layer import LayerSpec, fit_layer, output_moments
from .network import FeatureCache, Network
from .structure import WidthRule
from .survey import Survey


def input_gram(survey: Survey, rows: Rows, scaling: Scaling | None) -> Gram:
    """The spectrum of the raw (scaling None) or scaled input, without another pass in the primal form."""
    if rows.dual:
        block = rows.whole()
        return DualGram(block.X if scaling is None else scaling(block.X), block.w)
    moments = survey.moments
    G = moments.gram() if scaling is None else moments.gram(centred=True, scale=scaling.inverse)
    return PrimalGram(G, moments.weight, moments.product)


class Grower:
    """Grows a network layer by layer. `gram` and `moments` are always those of the newest features."""

    def __init__(
        self,
        rows: Rows,
        survey: Survey,
        spec: LayerSpec,
        width: WidthRule,
        input_scaling: str,
        product: str = "float64",
    ) -> None:
        self.all_rows = rows
        self.rows = rows if survey.fitted is None else survey.fitted
        self.survey, self.spec, self.width = survey, spec, width
        self.anchors = survey.anchors
        variance = survey.moments.variance_a()
        self.scaling_kind = structure.scaling_rule(input_scaling, variance)
        kinds = {"standard": Scaling.standard, "asinh": Squash.standard}
        make = kinds.get(self.scaling_kind)
        scaling = None if make is None else make(survey.moments.mean_a, variance)
        self.network = Network(rows.space, rows.dtype, scaling, gauge=rows.gauge)
        self.cache = FeatureCache(self.network)
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
            self.gram = input_gram(self.survey, self.all_rows, self.network.scaling)
        width = self._next_width(self.gram, name)
        anchors = self.rows.space.asarray(self.network(self.anchors[:width, :]), "float64")
        layer = fit_layer(self.rows, self.cache, self.gram, anchors, width, self.spec, name, self.width.target)
        self.network = self.network.grown(layer)
        self.moments, self.gram, below, self.cache = None, None, self.cache, FeatureCache(self.network, self.rows)
        if not last or self.spec.keep_decoder:
            self.moments = output_moments(self.rows, below, layer, self.spec, name, product, self.cache.keep)
            self.gram = PrimalGram(self.moments.gram(), self.moments.weight, self.moments.product)

    def _next_width(self, gram: Gram, name: str) -> int:
        width = self.width.neurons(self.depth, gram.size, gram.rank if self.width.needs_rank else 0)
        if self.spec.encoder == "truncated" and not self.width.given:
            width = max(1, min(width, gram.rank))
        available = int(self.survey.anchors.shape[0])
        if self.spec.encoder == "rows" and width > available:
            if self.width.given:
                raise too_few_rows(width, available, name)
            return available
        return width

    def reached_full_rank(self, growth: str | float) -> bool:
        """The paper's criterion on the newest features; never before the first layer."""
        if self.gram is None or not self.network.layers:
            return False
        if self.rows is not self.all_rows:
            n_rows = self.rows.n
        else:
            n_rows = self.survey.distinct if self.survey.all_counted else self.rows.n
        return structure.full_rank(self.gram.rank, n_rows, growth)


def too_few_rows(width: int, available: int, what: str) -> ValueError:
    return ValueError(
        f"{what} asks for {width} neurons, but only {available} distinct rows of positive weight are available and "
        f"each neuron is one of them: give more rows or a width of at most {available}."
    )
