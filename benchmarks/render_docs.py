"""The tables of the documentation that are about results: of choose.md, images.md, beyond.md, gpu.md and promises.md.

`python -m benchmarks.render` writes them with all others.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.machine import RESULTS
from benchmarks.render import between, gpu, images, no_argument

DOCS = Path(__file__).parents[1] / "docs"

OTHERS = ("MLPClassifier", "SVC", "LogisticRegression", "RidgeClassifierCV")
OWN, BOOSTING = "PILAEClassifier", "HistGradientBoosting"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _sets() -> dict:
    return json.loads((RESULTS / "tabular.json").read_text())["sets"]


def _peers() -> dict:
    """Every fit of peers.json by name; back-propagation after each epoch."""
    found = {}
    for name, case in json.loads((RESULTS / "peers.json").read_text())["methods"].items():
        for k, fit in enumerate(case.get("epochs", [case]), 1):
            found[f"{name}, {k} epochs" if "epochs" in case else name] = case | fit
    return found


def _compared(sets: tuple[str, ...], methods: tuple[str, ...]) -> str:
    """Accuracy and seconds of these methods on these sets, the best in bold."""
    rows = []
    for name in sets:
        found = _sets()[name]["methods"]
        best = max(round(found[method]["accuracy"], 4) for method in methods)
        cells = [(round(found[m]["accuracy"], 4), found[m]["seconds"]) for m in methods]
        rows.append([name, *(f"**{a:.4f}** ({s:.2f} s)" if a == best else f"{a:.4f} ({s:.2f} s)" for a, s in cells)])
    return _table(["", *(f"`{method}`" for method in methods)], rows)


def choose_means() -> str:
    sets = [s["methods"] for s in _sets().values()]
    mean = {m: sum(s[m]["accuracy"] for s in sets) / len(sets) for m in (OWN, *OTHERS)}
    seconds = {m: sum(s[m]["seconds"] for s in sets) for m in (OWN, *OTHERS)}
    rows = [[f"`{m}`", f"{mean[m]:.4f}", f"{seconds[m]:.1f}"] for m in sorted(mean, key=lambda m: -mean[m])]
    return (
        _table(["", "mean accuracy", f"seconds for all {len(sets)}"], rows)
        + f"\n\nThat is {100 * (mean[OWN] - mean['MLPClassifier']):.1f} points above the MLP on average, at "
        f"{seconds[OWN] / seconds['MLPClassifier']:.1f} times its time."
    )


def choose_boosting() -> str:
    return _compared(("segment", "spambase", "sylva_agnostic_train"), (OWN, BOOSTING))


def choose_small() -> str:
    rows = []
    for name, s in _sets().items():
        if s["rows"] < 500:
            best = max((m for m in s["methods"] if m != OWN), key=lambda m: s["methods"][m]["accuracy"])
            own, other = (f"{s['methods'][m]['accuracy']:.4f}" for m in (OWN, best))
            rows.append([name, str(s["rows"]), own, f"{other}, `{best}`"])
    return _table(["", "training rows", f"`{OWN}`", "best of the others"], rows)


def choose_linear() -> str:
    sets = ("har_subset735", "mfeat", "internet_ads", "sylva_agnostic_train")
    return _compared(sets, (OWN, "RidgeClassifierCV", "LogisticRegression"))


def choose_wide() -> str:
    names = ("segment", "spambase", "sylva_agnostic_train", "mfeat", "coil20_32x32", "internet_ads")
    rows = []
    for name in names:
        s = _sets()[name]
        times = (f"{s['methods'][m]['seconds']:.2f} s" for m in (OWN, "MLPClassifier"))
        rows.append([name, f"{s['columns']:,}", *times])
    return _table(["", "columns", f"`{OWN}`", "`MLPClassifier`"], rows)


def choose_back_propagation() -> str:
    peers = _peers()
    network = "PyTorch back-propagation 784-705-634-10, Adam"
    names = (
        "pilae: the paper's 784-705-634, head 4,000, ridge given",
        f"{network}, 3 epochs",
        "pilae: depth 2, 5,000 neurons",
        f"{network}, 5 epochs",
        f"{network}, 8 epochs",
        "MLPClassifier (705, 634), early stopping",
    )
    rows = [[n, f"{peers[n]['test_accuracy']:.4f}", f"{peers[n]['seconds']:.1f}"] for n in names]
    return _table(["", "test accuracy", "seconds"], rows)


def choose_nystroem() -> str:
    given = "width, structure, ridges"
    names = {
        "Nystroem 5,000 + RidgeClassifier": "width, gamma, ridge",
        "pilae: depth 2, 5,000 neurons": given,
        "pilae: depth 2, 3,000 neurons": given,
        "pilae: depth 0, 2,000 pairs": given,
        "pilae: no argument": "nothing",
    }
    peers = _peers()
    rows = []
    for name, by_hand in names.items():
        p = peers[name]
        memory = f"{p['peak_megabytes'] * 2**20 / 1e9:.1f} GB"
        rows.append([name, f"{p['test_accuracy']:.4f}", f"{p['seconds']:.1f}", f"{p['gemm']:.1f}", memory, by_hand])
    other, same, narrow, _, free = (peers[name] for name in names)

    def against(one: dict) -> str:
        points = 100 * (one["test_accuracy"] - other["test_accuracy"])
        share = 100 * one["gemm"] / other["gemm"]
        return f"{abs(points):.1f} points {'better' if points > 0 else 'worse'}, in {share:.0f}% of the time"

    memory = 100 * same["peak_megabytes"] / other["peak_megabytes"]
    text = [
        f"At the same width pilae is {against(same)} and {memory:.0f}% of the memory.",
        f"With 3,000 neurons it is {against(narrow)}.",
        f"With no argument, search included, it is {against(free)} of *one* fit of the pipeline.",
    ]
    head = ["", "test accuracy", "seconds", "in GEMM", "peak memory", "given by hand"]
    return _table(head, rows) + "\n\n" + "\n".join(text)


def choose_strangers() -> str:
    own = _sets()["isolet_subset"]["methods"][OWN]
    return (
        f"isolet_subset, whose test speakers are not in the training part: {own['loo']:.4f} leave-one-out, "
        f"{own['accuracy']:.4f} on the test part."
    )


def _beyond() -> dict:
    return json.loads((RESULTS / "beyond.json").read_text())


def beyond_residual() -> str:
    found = _beyond()["residual"]
    rows = [[name, f"{case['plain']:.4f}", f"{case['chosen']:.4f}"] for name, case in found["sets"].items()]
    gain, error = 100 * found["mean_gain"], 100 * found["paired_standard_error"]
    return "\n".join(
        [
            _table(["two layers", "plain stack", "skip or two stacks, where leave-one-out is lower"], rows),
            "",
            f"Not worse on {found['not_worse']} of {len(rows)} sets; {gain:+.2f} points on average, with a paired "
            f"standard error of {error:.2f}.",
            f"Made by `python -m benchmarks.beyond residual` at commit {found['commit']}.",
        ]
    )


def beyond_sparse() -> str:
    found = _beyond()["sparse"]
    [(name, cases)] = [(key, value) for key, value in found.items() if key != "commit"]
    rows = [
        [
            f"{case['decoder_l1']:g}",
            ", ".join(f"{100 * share:.0f}%" for share in case["density"]),
            f"{100 * case['density_of_all']:.0f}%",
            f"{case['test_accuracy']:.4f}",
            f"{case['seconds']:.0f}",
        ]
        for case in cases
    ]
    head = ["`decoder_l1`", "weights that are not zero, by layer", "of all", "test accuracy", "seconds"]
    made = f"Made by `python -m benchmarks.beyond sparse` at commit {found['commit']}."
    return f"{name}:\n\n{_table(head, rows)}\n\n{made}"


def beyond_robust() -> str:
    found = _beyond()["robust"]
    mean = found["mean"]
    return (
        "Friedman's first function, 2,000 rows, one target in twenty moved by 20 to 100 standard deviations of the "
        f"noise: root-mean-square error on clean rows {mean['squared']:.2f} with squared error, {mean['robust']:.2f} "
        f'with `loss="robust"`, {mean["clean"]:.2f} had the targets been right (means of {len(found["runs"])}). '
        f"Made by `python -m benchmarks.beyond robust` at commit {found['commit']}."
    )


def _torture() -> dict:
    return json.loads((RESULTS / "torture.json").read_text())


def torture_summary() -> str:
    results = _torture()
    parts, machine = results["parts"], results["machine"]
    rows = [
        [f"[`{name}.py`](#{name})", found["promise"], f"{found['seconds']:.0f}", f"{found['peak_megabytes']:,}"]
        for name, found in parts.items()
    ]
    minutes = sum(found["seconds"] for found in parts.values()) / 60
    made = ", ".join(sorted({found["commit"] for found in parts.values()}))
    return (
        _table(["", "promise", "seconds", "peak MB"], rows)
        + f"\n\nAll kept, in {minutes:.0f} minutes on {machine['cores']} cores of {machine['cpu']}"
        f"{results.get('beside', '')} with Python {machine['python']}, at commit {made}."
    )


def _said(value: Any) -> str:
    """A figure, or several, in words."""
    if isinstance(value, dict):
        return "; ".join(f"{key} {_said(item)}" for key, item in value.items())
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _torture_part(name: str) -> Callable[[], str]:
    """What one part counted and measured, under an anchor of its name."""

    def table() -> str:
        found = _torture()["parts"][name]
        lines = [
            f"- {key.replace('_', ' ')}: {_said(value)}"
            for key, value in found.items()
            if key not in ("promise", "seconds", "peak_megabytes", "commit")
        ]
        return "\n".join([f"({name})=", f"`pytest tests/torture --full -k {name}`:", "", *lines])

    table.__name__ = f"torture_{name}"
    return table


PAGES: dict[str, tuple[Callable[[], str], ...]] = {
    "choose.md": (
        choose_means,
        choose_boosting,
        choose_small,
        choose_linear,
        choose_wide,
        choose_back_propagation,
        choose_nystroem,
        choose_strangers,
    ),
    "images.md": (images, no_argument),
    "beyond.md": (beyond_residual, beyond_sparse, beyond_robust),
    "gpu.md": (gpu,),
    "promises.md": (torture_summary, *(_torture_part(name) for name in _torture()["parts"])),
}


def main() -> None:
    for page, tables in PAGES.items():
        text = (DOCS / page).read_text()
        for table in tables:
            text = between(text, table.__name__, table())
        (DOCS / page).write_text(text)


if __name__ == "__main__":
    main()
