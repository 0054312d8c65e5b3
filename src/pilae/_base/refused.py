"""Methods that an estimator cannot have."""

from typing import Self


class Refused:
    """A method that is not there, and why: `hasattr` says no, and whoever asks for it reads a sentence."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Self:
        if instance is None:
            return self
        raise AttributeError(f"{owner.__name__} has no {self.name}: {self.why}")
