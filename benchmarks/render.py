"""Write the measured tables into README, documentation and this folder's README: python -m benchmarks.render"""

import json
import math
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
        f"([results](results/paper_network.json)) on {machine['cores']} cores of {machine['cpu']},",
        f"at {commits(results)}.",
    ]
    return "\n".join(lines)


def no_argument() -> str:
    """The automatic fits of the table above, for the first screen."""
    results = json.loads((RESULTS / "paper_network.json").read_text())
    cases = {name: case for name, case in results["cases"].items() if "no argument" in name}
    lines = [
        "| `PILAEClassifier()` on | test accuracy | leave-one-out | calibration error | seconds |",
        "| --- | --- | --- | --- | --- |",
    ]
    titles = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "svhn_gray": "SVHN, gray, our crop"}
    for name, case in cases.items():
        lines.append(
            f"| {titles[name.split(',')[0]]} | {case['test_accuracy']:.4f} | {case['loo_accuracy']:.4f} | "
            f"{case['calibration_error']:.3f} | {case['seconds']:.0f} |"
        )
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


def peers() -> str:
    """Time to accuracy on MNIST."""
    results = json.loads((RESULTS / "peers.json").read_text())
    machine = results["machine"]
    rows: list[tuple[float, str]] = []
    for name, case in results["methods"].items():
        if "error" in case:
            rows.append((math.inf, f"| {name} | - | - | - | - | {case['error']} |"))
            continue
        memory = f"{case['peak_megabytes'] * 2**20 / 1e9:.1f} GB"
        for k, fit in enumerate(case.get("epochs", [case]), 1):
            label = f"{name}, {k} epoch{'s' if k > 1 else ''}" if "epochs" in case else name
            label = f"**{label}**" if name.startswith("pilae") else label
            rows.append(
                (
                    fit["gemm"],
                    f"| {label} | {fit['test_accuracy']:.4f} | {fit['seconds']:.1f} | {fit['gemm']:.1f} | {memory} |",
                )
            )
    lines = ["| method | test accuracy | seconds | in GEMM | peak memory |", "| --- | --- | --- | --- | --- |"]
    lines += [line for _, line in sorted(rows)]
    lines += [
        "",
        f"Made by `make bench-peers` on {machine['cores']} cores of {machine['cpu']}, at "
        f"{commits({'machine': machine, 'cases': results['methods']})}.",
    ]
    return "\n".join(lines)


def speed() -> str:
    results = json.loads((RESULTS / "speed.json").read_text())
    cases, machine = results["cases"], results["machine"]
    lines = [
        "| fit | seconds | in GEMM | of its own products | rows a second | peak memory | test accuracy |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, case in cases.items():
        if "gemm" not in case:
            continue
        own = f"{case['of_its_products']:.2f}" if "of_its_products" in case else "-"
        accuracy = "-" if case["test_accuracy"] is None else f"{case['test_accuracy']:.4f}"
        lines.append(
            f"| {name} | {case['seconds']:.1f} | {case['gemm']:.1f} | {own} | {case['rows_per_second']:,.0f} | "
            f"{case['peak_megabytes'] * 2**20 / 1e9:.2f} GB | {accuracy} |"
        )
    lines += ["", "| small things | |", "| --- | --- |"]
    plain = {"rows_per_second": "rows a second", "of_its_products": "of its products"}
    for name in ("iris", "prediction, paper's network", "import"):
        for what, value in cases[name].items():
            if what != "commit":
                shown = f"{value:,.0f}" if value > 100 else f"{value:.2f}"
                lines.append(f"| {name}: {plain.get(what, what)} | {shown} |")
    lines += [
        "",
        f"Made by `python -m benchmarks.speed` on {machine['cores']} cores of {machine['cpu']}, at {commits(results)}.",
    ]
    return "\n".join(lines)


def gpu() -> str:
    results = json.loads((RESULTS / "gpu.json").read_text())
    machine, rates = results["machine"], results["rates"]
    lines = [
        "| the paper's network on MNIST | rows on the card | rows in NumPy | test accuracy |",
        "| --- | --- | --- | --- |",
    ]
    for width in (4000, 10_000):
        case = results[f"paper's network, head {width}"]
        here, there = case["on the card"], case["from NumPy"]
        lines.append(
            f"| head {width:,} | {here['milliseconds']:.0f} ms | {there['milliseconds']:.0f} ms | "
            f"{here['test_accuracy']:.4f} |"
        )
    stream = results["streamed"]
    lines += [
        "",
        f"Streamed from host memory, {stream['rows']:,} rows of 100 float32 columns: {stream['seconds']:.1f} s; "
        + ", ".join(f"{name} at {rate:.0f} GB/s" for name, rate in stream["GB/s by pass"].items())
        + f" (pinned copies: {rates['pinned copy, GB/s']:.0f} GB/s).",
        "Products of 8,000 x 8,000 matrices: "
        f"{rates['torch.float32 product, TFLOP/s']:.0f} TFLOP/s in float32, "
        f"{rates['torch.float64 product, TFLOP/s']:.0f} in float64. Outputs agree with those of NumPy to "
        f"{results['agreement']['largest relative difference']:.0e} (float64).",
        f"Made by `python -m benchmarks.gpu` on one {machine['gpu']} with {machine['cores']} processor cores, at "
        f"commit {machine['commit']}.",
    ]
    return "\n".join(lines)


def command_line() -> str:
    """A large table through `pilae fit`, and the size of a report."""
    results = json.loads((RESULTS / "command_line.json").read_text())
    machine, fit, report = results["machine"], results["cases"]["fit"], results["cases"]["mnist report"]
    return "\n".join(
        [
            f"`pilae fit` on a made-up CSV of {fit['rows']:,} rows and {fit['columns']} whole-numbered columns "
            f"({fit['file_megabytes']:.0f} MB): {fit['seconds']:.0f} s, {fit['peak_megabytes'] * 2**20 / 1e9:.2f} GB. "
            f"The report of an MNIST model on its test rows: {report['report_megabytes']:.2f} MB, "
            f"{report['seconds']:.0f} s.",
            f"Made by `python -m benchmarks.command_line` on {machine['cores']} cores of {machine['cpu']}, at "
            f"{commits(results)}.",
        ]
    )


def images() -> str:
    """Patch features on images, on two cores and on a GPU."""
    results = json.loads((RESULTS / "images.json").read_text())
    names = {
        "mnist": "MNIST",
        "fashion_mnist": "Fashion-MNIST",
        "svhn_gray": "SVHN, gray, our crop",
        "cifar10": "CIFAR-10",
    }
    lines = [
        "| images | where | test accuracy | leave-one-out | seconds | features, head |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for place, where in (("cpu", "two cores"), ("cuda", "one GPU")):
        for name, case in results.get(place, {}).items():
            head = "ridge" if place == "cpu" else f"{case['head']:,} neurons"
            lines.append(
                f"| {names.get(name, 'CIFAR-10')} | {where} | {case['test_accuracy']:.4f} | "
                f"{case['leave_one_out']:.4f} | {case['seconds']:.1f} | {case['features']:,}, {head} |"
            )
    made = []
    for place, option in (("cpu", ""), ("cuda", " --cuda")):
        if place in results:
            machine, cases = results[f"{place}_machine"], results[place]
            kind = next(iter(cases.values())).get("gpu", f"{machine['cores']} cores of {machine['cpu']}")
            peak = max(case["peak_megabytes"] for case in cases.values()) * 2**20 / 1e9
            made.append(
                f"`python -m benchmarks.images{option}` on {kind}, at {commits({'machine': machine, 'cases': cases})}, "
                f"at most {peak:.1f} GB"
            )
    return "\n".join([*lines, "", f"Made by {'; '.join(made)}."])


TABLES = (speed, paper_network, tabular, peers, gpu, scale, command_line, images)


def main() -> None:
    for table in (no_argument, images):
        README.write_text(between(README.read_text(), table.__name__, table()))
    tables = RESULTS.parent / "README.md"
    text = tables.read_text()
    for table in TABLES:
        text = between(text, table.__name__, table())
    tables.write_text(text)
    from benchmarks import render_docs  # which uses the tables of this file

    render_docs.main()


if __name__ == "__main__":
    main()
