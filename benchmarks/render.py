"""Write the measured tables into README.md from benchmarks/results/*.json: python -m benchmarks.render"""

import json
from pathlib import Path

from benchmarks.machine import RESULTS

README = Path(__file__).parents[1] / "README.md"


def between(text: str, name: str, content: str) -> str:
    """Replace what stands between <!-- name --> and <!-- /name -->."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, rest = text.split(start)
    _, after = rest.split(end)
    return f"{before}{start}\n{content}\n{end}{after}"


def commits(results: dict) -> str:
    """The commits its cases were measured at: a case may have been measured again later."""
    found = {case.get("commit", results["machine"]["commit"]) for case in results["cases"].values()}
    return ("commit " if len(found) == 1 else "commits ") + ", ".join(sorted(found))


def paper_network() -> str:
    results = json.loads((RESULTS / "paper_network.json").read_text())
    cases, machine = results["cases"], results["machine"]
    lines = [
        "| data and head | test accuracy | leave-one-out | calibration error | seconds | in GEMM | peak memory |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, case in cases.items():
        if name == "equality":
            continue
        loo = "-" if case["loo_accuracy"] is None else f"{case['loo_accuracy']:.4f}"
        lines.append(
            f"| {name} | {case['test_accuracy']:.4f} | {loo} | {case['calibration_error']:.3f} | "
            f"{case['seconds']:.0f} | {case['gemm']:.0f} | "
            f"{case['peak_megabytes'] * 2**20 / 1e9:.2f} GB |"
        )
    searched = [case for case in cases.values() if case.get("seconds_without_search")]
    ratios = [case["seconds"] / case["seconds_without_search"] for case in searched]
    equal = max(value for value in cases["equality"].values() if isinstance(value, float))
    lines += [
        "",
        f"With no argument a fit took {min(ratios):.1f} to {max(ratios):.1f} times as long as the structure it ends "
        "with when that is given.",
        f"Blocks of 1,000 rows, one block, and shuffled rows give the same MNIST outputs to {equal:.0e} (float64). One "
        '"GEMM" is a',
        "4000 x 4000 float64 matrix product timed in the same process. Made by `make bench`",
        f"([results](benchmarks/results/paper_network.json)) on {machine['cores']} cores of {machine['cpu']},",
        f"at {commits(results)}.",
    ]
    return "\n".join(lines)


def tabular() -> str:
    """One row for each set, one column for each method: accuracy, and seconds to fit."""
    results = json.loads((RESULTS / "tabular.json").read_text())
    sets, machine = results["sets"], results["machine"]
    names = list(max((s["methods"] for s in sets.values()), key=len))
    lines = [
        "| data | rows x columns | " + " | ".join(names) + " | leave-one-out |",
        "| --- | --- | " + " | ".join("---" for _ in names) + " | --- |",
    ]
    for name, s in sets.items():
        best = max(m["accuracy"] for m in s["methods"].values())
        cells = []
        for method in names:
            m = s["methods"].get(method)
            bold = "**" if m and round(m["accuracy"], 4) == round(best, 4) else ""
            cells.append("-" if m is None else f"{bold}{m['accuracy']:.4f}{bold} ({m['seconds']:.2f} s)")
        loo = s["methods"]["PILAEClassifier"]["loo"]
        lines.append(f"| {name} | {s['rows']} x {s['columns']} | " + " | ".join(cells) + f" | {loo:.4f} |")
    four = [n for n in names if n not in ("PILAEClassifier", "HistGradientBoosting")]
    whole = [s["methods"] for s in sets.values() if all(n in s["methods"] for n in four)]
    means = ", ".join(f"{n} {sum(m[n]['accuracy'] for m in whole) / len(whole):.4f}" for n in names[:1] + four)
    time_of = {n: sum(m[n]["seconds"] for m in whole) for n in names[:1] + four}
    lines += [
        "",
        f"Means over the {len(whole)} sets that all have: {means}. Seconds in all: "
        + ", ".join(f"{n} {t:.1f}" for n, t in time_of.items())
        + ".",
        f"Made by `python -m benchmarks.tabular` on {machine['cores']} cores of {machine['cpu']}, at commit "
        f"{machine['commit']}.",
    ]
    return "\n".join(lines)


def scale() -> str:
    """Time and memory against rows."""
    results = json.loads((RESULTS / "scale.json").read_text())
    cases, machine = results["cases"], results["machine"]
    lines = [
        "| rows x 100 float32 on disk | seconds | microseconds a row | passes | anonymous memory above the start |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, case in cases.items():
        if name == "dask":
            continue
        read = " (20 GB, read into buffers, 4.3 GB of address space allowed)" if name == "large" else " (memmap)"
        lines.append(
            f"| {case['rows']:,}{read} | {case['seconds']:.1f} | {case['microseconds_a_row']:.2f} | "
            f"{case['passes']} | "
            f"{case['anonymous_megabytes_above_start']:.0f} MB |"
        )
    dask = cases["dask"]
    lines += [
        "",
        f"Dask's overhead on 64 blocks of 20,000 rows: {100 * dask['overhead']:.0f}% ({dask['dask_seconds']:.1f} s "
        f"against {dask['loop_seconds']:.1f} s in a loop).",
        f"Made by `python -m benchmarks.scale [--large]` on {machine['cores']} cores of {machine['cpu']}, at "
        f"{commits(results)}.",
    ]
    return "\n".join(lines)


def main() -> None:
    README.write_text(between(README.read_text(), "paper_network", paper_network()))
    tables = RESULTS.parent / "README.md"
    text = between(tables.read_text(), "tabular", tabular())
    tables.write_text(between(text, "scale", scale()))


if __name__ == "__main__":
    main()
