"""A model of several networks whose outputs are averaged: taken apart into models of one network each and joined again,
as whatever is done to it is done network by network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from .._network.averaged import AveragedHead, side_by_side, taken_apart
from .fitted import FittedModel

Step = Callable[..., FittedModel]


def members(fitted: FittedModel) -> list[FittedModel]:
    """Models of one network each. Leave-one-out results of the mean are with the first."""
    if not isinstance(fitted.head, AveragedHead):
        return [fitted]
    return [replace(fitted, network=network, head=head) for network, head in taken_apart(fitted.network, fitted.head)]


def joined(models: list[FittedModel]) -> FittedModel:
    """The same together; what is not of a network is that of the first."""
    first = models[0]
    if len(models) == 1:
        return first
    heads = [model.head.linear("predict") for model in models]
    network, head = side_by_side([model.network for model in models], heads, first.columns.width)
    return replace(first, network=network, head=head)


def network_by_network(step: Step) -> Step:
    """A step from one fitted model to the next, of models of several networks for each of them."""

    @wraps(step)
    def steps(fitted: FittedModel, *args: Any, **named: Any) -> FittedModel:
        return joined([step(each, *args, **named) for each in members(fitted)])

    return steps
