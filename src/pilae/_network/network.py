"""The feature map: input scaling, then layers; and its features kept between passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from .._arrays import Array, Space, namespace, space_of, times_powers
from .._arrays.buffers import empty
from .._base.saveable import check_dtype, check_shape, saveable
from .._data.rows import Block, Rows
from .._engine.moments import Moments
from .._engine.scaling import Scaling
from .layer import Layer

KEPT_BYTES = 3 * 2**26
"""Most that is kept of features between passes over rows in memory."""


@saveable
@dataclass
class Network:
    """The feature map: input scaling, then layers. Lives in one array library, on one device, in one dtype.

    With `skip` a head sees the scaled input and the features of all layers, side by side; with `others` also what these
    networks make of the rows. With a `gauge` rows come under it (see `Rows`).
    """

    space: Space
    dtype: str
    scaling: Scaling | None = None
    layers: list[Layer] = field(default_factory=list)
    skip: bool = False
    others: tuple[Network, ...] = ()
    gauge: np.ndarray | None = None

    def __call__(self, X: Array, depth: int | None = None) -> Array:
        """What a head sees, or the features of layer `depth` alone."""
        others = [other(X) for other in self.others] if depth is None else []
        below: list[Array] = []  # kept only where it is wanted: blocks of every layer are memory
        if self.scaling is not None:
            X = self.scaling(X)
        for layer in self.layers[:depth]:
            if self.skip and depth is None:
                below.append(X)
            X = layer(X)
        parts = [*below, X, *others]
        return X if len(parts) == 1 else namespace(X).concat(parts, axis=1)

    @property
    def widest(self) -> int:
        """Neurons of the widest layer, or columns of the scaled input."""
        own = [layer.width for layer in self.layers] + [self.scaled_width(0)]
        return max(own + [other.widest for other in self.others])

    def scaled_width(self, columns: int) -> int:
        """Columns of the scaled input of rows of so many columns."""
        return columns if self.scaling is None else self.scaling.width

    def decode(self, H: Array, depth: int | None = None) -> Array:
        """Back from layer `depth` to the network's (scaled) input."""
        for layer in reversed(self.layers[:depth]):
            H = layer.decode(H)
        return H

    def undo(self, X: Array) -> Array:
        """From the (scaled) input back to the units of the rows."""
        return self.undo_gauge(X if self.scaling is None else self.scaling.undo(X))

    def undo_gauge(self, X: Array) -> Array:
        return X if self.gauge is None else times_powers(X, -self.gauge)

    def check_shapes(self, columns: int) -> int:
        """What a head sees of rows of so many columns; an error where the parts do not fit together."""
        check_dtype(self.dtype)
        if self.scaling is not None:
            self.scaling.check_shapes(columns)
        width = features = self.scaled_width(columns)
        if self.gauge is not None:
            check_shape(self.gauge, columns)
        for layer in self.layers:
            p = int(layer.weights.shape[1])
            check_shape(layer.weights, width, p)
            if layer.decoder is not None:
                check_shape(layer.decoder, p, width)
                check_shape(layer.decoder_bias, width)
            width, features = p, p + (features if self.skip else 0)
        return features + sum(other.check_shapes(columns) for other in self.others)

    def lean(self) -> Network:
        """Without the sums that its layers, and those of networks beside them, were made from."""
        layers = [replace(layer, statistics=None) for layer in self.layers]
        return replace(self, layers=layers, others=tuple(other.lean() for other in self.others))

    def moments(self, rows: Rows, label: str, product: str = "float64") -> Moments:
        """Of what it makes of the rows."""

        def add(moments: Moments, block: Block) -> None:
            H = self(block.X)
            moments.add(H, None, block.w, scratch=H is not block.X)

        return rows.total(partial(Moments, rows.space, product=product), add, label)


class FeatureCache:
    """What a network makes of a block of rows, to be called in one pass after another.

    Of rows in memory the features of the first are kept between passes, so that the layers below are not computed
    again each time: up to KEPT_BYTES (more on a GPU), whatever the number of rows.
    """

    def __init__(self, network: Callable[[Array], Array], rows: Rows | None = None) -> None:
        self.network = network
        self.most = 0 if rows is None or not rows.in_memory or rows.block_rows != "auto" else rows.n
        self.room = 0 if rows is None else rows.space.budget(KEPT_BYTES)
        self.held: Array = None
        self.filled = 0

    def __call__(self, block: Block) -> Array:
        stop = block.start + int(block.X.shape[0])
        if stop <= self.filled:
            return self.held[block.start : stop, :]
        if block.start >= self.filled:
            H = self.network(block.X)
            self.keep(block, H)
            return H
        rest = self.network(block.X[self.filled - block.start :, :])
        return namespace(rest).concat([self.held[block.start : self.filled, :], rest], axis=0)

    def release(self) -> None:
        """Keep nothing any more: the last pass is over."""
        self.held, self.filled, self.room = None, 0, 0

    def keep(self, block: Block, H: Array) -> None:
        """Keep these features of a block if its rows come next and there is room."""
        n, p = (int(size) for size in H.shape)
        most = min(self.room // (p * (4 if "float32" in str(H.dtype) else 8)), self.most)
        if block.start != self.filled or self.filled >= most:
            return
        if self.held is None:
            xp, device = space_of(H)
            shape = most, p
            held = isinstance(H, np.ndarray)
            self.held = empty(shape, H.dtype) if held else xp.empty(shape, dtype=H.dtype, device=device)
        stop = min(self.filled + n, most)
        self.held[self.filled : stop, :] = H[: stop - self.filled, :]
        self.filled = stop
