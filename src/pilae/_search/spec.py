"""What to build and what to leave to the search: the parameters of an estimator, checked, typed and frozen."""

from dataclasses import dataclass

from sklearn.base import BaseEstimator

from .._network.layer import LayerSpec
from .._network.structure import Plan, WidthRule

LAYER_RIDGE = 1e-3
"""encoder_ridge="auto" in autoencoder layers."""

HEAD_RIDGE = 1e-6
"""encoder_ridge="auto" for the head's neurons on autoencoder features where nothing is searched."""

HEAD_RIDGE_ON_INPUT = 1.0
"""The same on the input itself (depth 0)."""

MOST_BRANCHES = 4


@dataclass(frozen=True)
class HeadSpec:
    """An output layer. None leaves a value to the search, or to its rule."""

    kind: str
    """ "shln", "ridge", "softmax" or "estimator"."""
    width: int | None = None
    formula: bool = False
    """Whether the width is that of eq (31)."""
    encoder_ridge: float | None = None
    anchors: str | None = None
    direct: bool | None = None
    activation: str | None = None
    length: float | None = None
    metric: str | None = None
    """ "inputs" (what labels say is not asked), "labels" or "diagonal"."""
    networks: int | None = None
    """How many are averaged."""
    estimator: BaseEstimator | None = None

    @property
    def free(self) -> bool:
        """Whether the search may find any hidden layer."""
        given = (self.width, self.encoder_ridge, self.anchors, self.direct, self.activation, self.length, self.metric)
        return self.kind == "shln" and not self.formula and all(each is None for each in given)

    @property
    def shaped(self) -> bool:
        """Whether a metric from labels was asked for."""
        return self.metric in ("labels", "diagonal")

    @property
    def linear(self) -> bool:
        """Whether it is a sum over rows."""
        return self.kind in ("shln", "ridge")


@dataclass(frozen=True)
class Spec:
    """A network. None leaves a value to the search, or to its rule."""

    depth: int | None
    width: WidthRule
    max_depth: int
    growth: str | float
    layer: LayerSpec
    anchors: str
    head: HeadSpec
    skip: bool | None
    branches: int
    ridge: float | str
    input_scaling: str
    fit_rows: int | str | None
    keep_statistics: bool
    seed: int

    def plan(self, input_scaling: str, depth: int, kind: str) -> Plan:
        """What is given, and for what is left open the value that a search begins with."""
        head = self.head
        radial = head.anchors == "radial"
        return Plan(
            input_scaling,
            depth,
            kind,
            neurons=head.anchors or "rows",
            encoder_ridge=HEAD_RIDGE if head.encoder_ridge is None else head.encoder_ridge,
            activation=head.activation or ("laplace" if radial else "relu"),
            direct=bool(head.direct),
            skip=depth != 0 and bool(self.skip),
            branches=self.branches if depth else 1,
            length=(head.length or 1.0) if radial else None,
        )

    @property
    def shaping(self) -> bool:
        """Whether labels are asked for a metric although nothing else is searched."""
        return not self.searching and self.head.shaped

    @property
    def searching(self) -> bool:
        return self.depth is None and self.growth == "loo" and self.width.listed is None
