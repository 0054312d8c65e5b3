"""What users can write, as text: names, parameters and defaults, fitted attributes, commands and their options.

tests/public_api.txt is committed and compared by a test, so that whoever changes what users can write does it on
purpose: `python -m tests.public_api` writes it anew.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pilae
from pilae.cli.arguments import make_parser

FILE = Path(__file__).with_name("public_api.txt")
REFERENCE = Path(__file__).parents[1] / "docs" / "api.md"


OTHERS = ("pilae.datasets.NAMES", "pilae.save.save")
"""What the pages use besides."""


def names() -> list[str]:
    """Whatever the API reference names, and everything of `pilae` itself."""
    named = re.findall(r"auto(?:class|function):: (pilae\.[\w.]+)", REFERENCE.read_text())
    return sorted({*named, *OTHERS, *(f"pilae.{name}" for name in pilae.__all__)})


def text() -> str:
    found = [line for name in names() for line in described(name)]
    return "\n".join([*found, *commands()]) + "\n"


def described(name: str) -> list[str]:
    module, _, last = name.rpartition(".")
    thing = getattr(importlib.import_module(module), last)
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return [f"{name}({thing.__base__.__name__})"]
    if inspect.isclass(thing):
        return [f"{name}{parameters(thing)}", *sorted({*members(name, thing), *fitted(name, thing)})]
    return [f"{name}{parameters(thing)}" if callable(thing) else name]


def members(name: str, kind: type) -> list[str]:
    """Methods and properties of the class and of pilae's own base classes; what scikit-learn adds is its promise."""
    own = [base for base in kind.__mro__ if base.__module__.split(".")[0] == "pilae"]
    found = []
    for key in {key for base in own for key in vars(base) if not key.startswith("_")}:
        plain = inspect.getattr_static(kind, key)
        if isinstance(plain, property):
            found.append(f"{name}.{key}")
        elif callable(getattr(kind, key)) and not type(plain).__module__.startswith("sklearn"):
            found.append(f"{name}.{key}{parameters(getattr(kind, key))}")
    return found


def fitted(name: str, kind: type) -> list[str]:
    """The attributes that the docstring lists."""
    _, _, listed = inspect.cleandoc(kind.__doc__ or "").partition("Attributes\n----------\n")
    section = re.split(r"\n\w+\n-+\n", listed)[0]
    together = re.findall(r"^(\w[\w, ]*) : ", section, flags=re.M)
    return [f"{name}.{attribute}" for line in together for attribute in line.split(", ")]


def parameters(thing: Any) -> str:
    """Names, order, kinds and defaults. Annotations are for type checkers and stay out."""
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in inspect.signature(thing).parameters.values()]
    return str(inspect.Signature(plain))


def commands() -> list[str]:
    """Every command of the command line with its arguments."""
    top = make_parser()
    (choices,) = (action.choices for action in top._actions if isinstance(action, argparse._SubParsersAction))
    found = []
    for name, parser in choices.items():
        found.append(f"$ pilae {name}")
        for action in parser._actions:
            if action.dest != "help":
                words = ", ".join(action.option_strings) or action.dest
                default = "required" if action.required else f"default {action.default!r}"
                among = f", one of {', '.join(action.choices)}" if action.choices else ""
                found.append(f"$ pilae {name} {words}: {default}{among}")
    return found


if __name__ == "__main__":
    FILE.write_text(text())
