"""What the tests that try to break pilae counted and measured, part by part."""

from functools import partial
from typing import Any

from studies.render import place, table
from studies.store import read, results_of

RESULTS = results_of("promises", "torture")


def summary() -> str:
    results = read(RESULTS)
    parts, machine = results["parts"], results["machine"]
    rows = [
        [f"[`{name}.py`](#{name})", found["promise"], f"{found['seconds']:.0f}", f"{found['peak_megabytes']:,}"]
        for name, found in parts.items()
    ]
    minutes = sum(found["seconds"] for found in parts.values()) / 60
    made = ", ".join(sorted({found["commit"] for found in parts.values()}))
    return (
        f"{table(' | promise | seconds | peak MB', rows)}\n\nAll kept, in {minutes:.0f} minutes on {place(machine)}"
        f"{results.get('beside', '')} with Python {machine['python']}, at commit {made}."
    )


def part(name: str) -> str:
    """The figures of one, under an anchor of its name."""
    found = read(RESULTS)["parts"][name]
    shown = {
        key: value for key, value in found.items() if key not in ("promise", "seconds", "peak_megabytes", "commit")
    }
    lines = [f"- {key.replace('_', ' ')}: {in_words(value)}" for key, value in shown.items()]
    return "\n".join([f"({name})=", f"`pytest tests/torture --full -k {name}`:", "", *lines])


def in_words(value: Any) -> str:
    """A figure, or several."""
    if isinstance(value, dict):
        return "; ".join(f"{key} {in_words(item)}" for key, item in value.items())
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


PAGES = {
    "docs/promises.md": {"torture_summary": summary}
    | {f"torture_{name}": partial(part, name) for name in read(RESULTS)["parts"]}
}
