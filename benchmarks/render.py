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


def paper_network() -> str:
    results = json.loads((RESULTS / "paper_network.json").read_text())
    cases, machine = results["cases"], results["machine"]
    lines = [
        "| data and head | test accuracy | leave-one-out | seconds | in GEMM | peak memory |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, case in cases.items():
        if name == "equality":
            continue
        loo = "-" if case["loo_accuracy"] is None else f"{case['loo_accuracy']:.4f}"
        lines.append(
            f"| {name} | {case['test_accuracy']:.4f} | {loo} | {case['seconds']:.0f} | {case['gemm']:.0f} | "
            f"{case['peak_megabytes'] * 2**20 / 1e9:.2f} GB |"
        )
    equal = max(cases["equality"].values())
    lines += [
        "",
        f"Blocks of 1,000 rows, one block, and shuffled rows give the same MNIST outputs to {equal:.0e} (float64). One "
        '"GEMM" is a',
        "4000 x 4000 float64 matrix product timed in the same process. Made by `make bench`",
        f"([results](benchmarks/results/paper_network.json)) on {machine['cores']} cores of {machine['cpu']},",
        f"at commit {machine['commit']}.",
    ]
    return "\n".join(lines)


def main() -> None:
    README.write_text(between(README.read_text(), "paper_network", paper_network()))


if __name__ == "__main__":
    main()
