"""All or nothing: estimators that change in one step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from .._arrays.threads import sharing

Method = TypeVar("Method", bound=Callable)


def twin(estimator: Any) -> Any:
    """Another estimator of the same parameters and the same fitted attributes, as they are at this moment."""
    other = object.__new__(type(estimator))
    other.__dict__.update(vars(estimator))
    return other


def whole_update(method: Method, *, fresh: bool = False) -> Method:
    """All or nothing: the method works on a twin, which takes the estimator's place in one step when it is done.

    An error, or Ctrl-C at any moment, leaves the estimator as it was or as it is afterwards, and a thread that predicts
    meanwhile sees one or the other. The method must replace what it changes, not write into it. If another thread has
    changed the estimator meanwhile, the update is done again on what it is now, so that the rows of neither are lost.
    With `fresh` no attribute of an earlier fit is left.
    """

    @functools.wraps(method)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        while True:
            start, other = vars(self), twin(self)
            for name in list(vars(other)) if fresh else ():
                if name.endswith("_") and not name.startswith("__"):
                    delattr(other, name)
            with sharing(*args, *kwargs.values()):
                method(other, *args, **kwargs)
            new = vars(other)
            # no call in between, so that no other thread gets its turn; a lock could be left locked by Ctrl-C
            if fresh or self.__dict__ is start:
                self.__dict__ = new
                return self

    return cast(Method, whole)


def whole_fit(method: Method) -> Method:
    """`whole_update` from nothing."""
    return whole_update(method, fresh=True)


def at_one_moment(method: Method) -> Method:
    """The method sees one state of the estimator throughout, whatever another thread adds meanwhile."""

    @functools.wraps(method)
    def seen(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(twin(self), *args, **kwargs)

    return cast(Method, seen)
