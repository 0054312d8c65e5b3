"""Figures in the sentences of pages, outside of their tables: what each is.

Tables are made from results, and what they hold is in the manifest. A sentence is written by hand, so each figure in
one stands here: where it was measured, or why it is no measurement of ours. A test finds figures in sentences and fails
where one is missing here, is not what was measured, or is not in its page any more.
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

FIGURE = re.compile(
    r"(?<![\w.,$])(?:\d[\d,]*\.?\d*|\.\d+)\s?(?:ms|s|seconds?|minutes?|hours?|%|per cent|[kMG]B|microseconds?|times|"
    r"GEMM|points?|rows a second|[TG]FLOP/s)(?![\w/])|(?<![\w.,$])0?\.\d{2,4}(?!\w|\.\d)"
)
"""A number with a unit in which we measure, or what looks like an accuracy."""


LEFT_OUT = (
    r"<!-- (\w+) -->.*?<!-- /\1 -->",
    r"```.*?```",
    r"\$\$.*?\$\$",
    r"`[^`]*`",
    r"\$[^$\n]+\$",
    r"\]\([^)]*\)",
)
"""Tables that are made from results, code, formulas, where links lead to."""


class Measured(NamedTuple):
    """A number of a file of results, with as many digits as are quoted."""

    file: str
    keys: tuple[str | int, ...]

    def like(self, quoted: str) -> str:
        """The number with the digits of a quoted one."""
        found = json.loads((ROOT / "studies" / self.file).read_text())
        for key in self.keys:
            found = found[key]
        digits = quoted.split()[0].rstrip("%").partition(".")[2]
        return f"{found:.{len(digits)}f}"


def _tasks(*keys: str | int) -> Measured:
    return Measured("continual/results/tasks.json", ("cases", "isolet_subset", *keys))


LIMIT = "a limit or a default in the code"
OTHERS = "published by others"
PAGE = "what the page's own code gives, which a test of the page compares"
REASONED = "follows from what is said there"
FORMAT = "a number written in a table, as an example"

QUOTED: dict[str, dict[str, str | Measured]] = {
    "CHANGELOG.md": {"12.3%": FORMAT},
    "docs/choose.md": {"0.98": REASONED, "0.14 points": REASONED},
    "docs/cli.md": {"500 MB": LIMIT, "60 seconds": LIMIT, "12.3%": FORMAT},
    "docs/data.md": {
        "1,000 times": LIMIT,
        "10 times": LIMIT,
        "1%": LIMIT,
        "1.25%": REASONED,
        "2 GB": LIMIT,
        "12.8 GB": REASONED,
    },
    "docs/deletion.md": {"0.01": PAGE},
    "docs/images.md": {
        "20 times": OTHERS,
        "0.787": OTHERS,
        "0.796": OTHERS,
        "0.84": OTHERS,
        "0.90": OTHERS,
        "0.94": OTHERS,
        "2.6 seconds": OTHERS,
        "0.99": OTHERS,
    },
    "docs/later_classes.md": {
        "0.980": PAGE,
        "0.991": PAGE,
        "0.982": PAGE,
        "0.66": _tasks("tasks", "pilae, no argument", "accuracy", -1),
        "0.87": _tasks("all", "pilae, no argument", "accuracy"),
    },
    "docs/maths.md": {"1%": LIMIT, "200 times": LIMIT, "99%": LIMIT},
    "docs/promises.md": {"256 MB": LIMIT, "100 times": LIMIT},
    "docs/report.md": {"95%": LIMIT},
    "docs/speed.md": {"30 seconds": FORMAT},
    "docs/stream.md": {"0.99": FORMAT, "1%": LIMIT},
    "docs/tables.md": {"12.3%": FORMAT},
    "studies/README.md": {"24 GB": REASONED},
    "studies/paper/RESULTS.md": {"0.001": LIMIT, "0.999": LIMIT, "0.1 points": LIMIT, "1 point": LIMIT},
    "studies/paper/QUICK.md": {"0.1 points": LIMIT, "1 point": LIMIT},
}
"""By page, each figure as it is written there."""


def pages() -> list[str]:
    """All that people read, from the root of the repository."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("studies/**/*.md")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def sentences(text: str) -> str:
    """A page without what is made from results, code and formulas."""
    for left_out in LEFT_OUT:
        text = re.sub(left_out, " ", text, flags=re.DOTALL)
    return " ".join(text.split())


def figures_in(text: str) -> set[str]:
    """As they are written in the sentences of a page."""
    return {found.group().strip() for found in FIGURE.finditer(sentences(text))}
