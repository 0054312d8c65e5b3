"""Write experiments/RESULTS.md (QUICK.md) and the README's table from the results: python -m experiments.render"""

from statistics import mean, stdev

from benchmarks.render import README, between
from experiments import figure2, table2
from experiments.ablations import BASE, CHANGES
from experiments.common import COMMAND, HERE, QUICK, SEEDS, read
from experiments.notes import NOTES
from experiments.paper import DATA, PARTS, TABLE_3, TABLES, Row
from experiments.table3 import HEADS, RULE

TARGET = HERE / ("QUICK.md" if QUICK else "RESULTS.md")
PAPER_NAMES = {name: paper for paper, name in reversed(DATA.items())}


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def per_cent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"


def spread(values: list[float]) -> str:
    """Mean and deviation of accuracies, in per cent."""
    return per_cent(mean(values)) + (f" ± {100 * stdev(values):.2f}" if len(values) > 1 else "")


def difference(ours: float | None, theirs: float | None) -> str:
    """In points."""
    return "-" if ours is None or theirs is None else f"{100 * ours - theirs:+.2f}"


def number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.{digits}g}"


def until(seconds: list[float], own: float, runs: int) -> str:
    """The ratio of the seconds until a certain accuracy to our own, and how many runs came that far."""
    return f"{number(mean(seconds) / own)} ({len(seconds)} of {runs} runs)" if seconds else "never reached"


def note(part: str, name: str) -> str:
    return "" if QUICK else NOTES.get((part, name), "")  # they are about the whole tables


def commits(part: str) -> str:
    found = sorted({cell["commit"] for cell in read(part)["cells"].values() if "missing" not in cell})
    return ", ".join(found)


def made(part: str) -> str:
    """The line under a table: how, where, at which commits."""
    results = read(part)
    machine = results["machine"]
    return (
        f"Made by `{results['command']}` ([numbers](results/{'quick' if QUICK else 'full'}/{part}.json)) on "
        f"{machine['cores']} cores of {machine['cpu']}, torch {machine['torch']}, "
        f"numpy {machine['versions']['numpy']}, at {commits(part)}."
    )


def rows_of(part: str) -> list[tuple[str, Row | None, dict]]:
    """(name, the paper's row, cell) of Tables I and II: a part of a set stands under it, without the paper's row."""
    cells = read(part)["cells"]
    found: list[tuple[str, Row | None, dict]] = []
    for row in TABLES:
        name = DATA[row.name]
        if name in cells:
            found.append((row.name, row, cells[name]))
            if name in PARTS and PARTS[name] in cells and row.name != "Har 1":
                found.append((PARTS[name], None, cells[PARTS[name]]))
    return found


def missing(cell: dict) -> str:
    return "not available here" if "missing" in cell else ""


def table_1() -> str:
    rows = []
    for name, row, cell in rows_of("table1"):
        theirs = ["-"] * 3 if row is None else [str(row.rows), str(row.features), str(row.rank)]
        ours = [missing(cell), "", "", ""]
        if not missing(cell):
            ours = [str(cell[key]) for key in ("rows", "features", "rank by SVD", "rank")]
        rows.append([name, *theirs, *ours, note("table1", name)])
    head = [
        "data",
        "rows (paper)",
        "features (paper)",
        "rank (paper)",
        "rows",
        "features",
        "rank (SVD)",
        "rank (Gram)",
        "",
    ]
    return table(head, rows) + "\n\n" + made("table1")


def width_table() -> str:
    """Table II, first part: the width, by three ways."""
    rows = []
    for name, row, cell in rows_of("table2"):
        theirs = ["-"] * 3
        if row is not None:
            theirs = [str(row.best), f"{row.accuracy_best:.2f}", str(row.predicted)]
        if missing(cell):
            rows.append([name, *theirs, missing(cell), "", "", "", "", ""])
            continue
        low, high = min(cell["widths"]), max(cell["widths"])
        brute, formula = cell.get("brute_force"), cell.get("formula")
        by_formula = "-"
        if formula is not None:
            by_formula = str(formula["width"])
            if formula["accuracy"] is not None:
                by_formula += f": {per_cent(formula['accuracy'])}"
        rows.append(
            [
                name,
                *theirs,
                f"{low}" if low == high else f"{low} to {high}",
                per_cent(cell["accuracy"]),
                number(cell["seconds_with_search"]),
                "-" if brute is None else f"{brute['width']}: {per_cent(brute['accuracy'])}",
                "-" if brute is None else number(brute["seconds"] / cell["folds"]),
                by_formula,
            ]
        )
    head = [
        "data",
        "best width (paper)",
        "its accuracy (paper)",
        "by formula (paper)",
        "width path",
        "accuracy",
        "seconds, search and all widths",
        "brute force: accuracy",
        "seconds",
        "formula: accuracy",
    ]
    return table(head, rows)


def training_table() -> str:
    """Table II, second part: PIL and back-propagation at the same width."""
    rows = []
    for name, row, cell in rows_of("table2"):
        reference = None if row is None else row.accuracy or row.accuracy_best
        theirs = ["-"] * 3
        if row is not None:
            ratio = None if row.seconds is None else row.seconds_bp / row.seconds
            theirs = [f"{reference:.2f}", number(row.accuracy_bp, 4), number(ratio)]
        if missing(cell):
            rows.append([name, *theirs, missing(cell), *[""] * 8])
            continue
        summary = table2.bp_summary(cell)
        deviation = "" if summary["deviation"] is None else f" ± {100 * summary['deviation']:.2f}"
        reached = f" ({summary['reached']} of {summary['runs']} runs)" if summary["reached"] < summary["runs"] else ""
        rows.append(
            [
                name,
                *theirs,
                per_cent(cell["accuracy"]),
                difference(cell["accuracy"], reference),
                per_cent(summary["accuracy"]) + deviation,
                number(cell["seconds"]),
                number(summary["seconds"]),
                f"**{number(summary['ratio'])}**",
                number(summary["ratio_with_search"]),
                "never reached" if summary["ratio_same"] is None else number(summary["ratio_same"]) + reached,
                note("table2", name),
            ]
        )
    head = [
        "data",
        "accuracy (paper)",
        "BP (paper)",
        "time BP / PIL (paper)",
        "accuracy",
        "difference",
        "BP",
        "seconds",
        "seconds BP",
        "(a) BP until saturated / PIL",
        "(a) with PIL's search counted",
        "(b) BP until PIL's accuracy / PIL",
        "",
    ]
    return table(head, rows) + "\n\n" + made("table2")


def table_3() -> str:
    cells = read("table3")["cells"]
    rows = []
    for name, cell in cells.items():
        paper = TABLE_3.get(PAPER_NAMES.get(name, ""))
        title = PAPER_NAMES.get(name, figure2.TITLES.get(name, name))
        for head in ("softmax", "SHLN"):
            theirs = None if paper is None else paper["pilae"][head]
            printed = ["-", "-"] if paper is None else [per_cent(theirs), per_cent(paper["bp"][head])]
            if missing(cell):
                rows.append([title, head, *printed, missing(cell), *[""] * 4])
                continue
            ours = cell["pilae"][head]["accuracy"]
            rows.append(
                [
                    title,
                    head,
                    *printed,
                    per_cent(ours),
                    difference(ours, None if theirs is None else 100 * theirs),
                    spread([run["heads"][head]["accuracy"] for run in cell["greedy"].values()]),
                    spread([run["accuracy"] for run in cell["end_to_end"][head].values()]),
                    note("table3", f"{name} {head}"),
                ]
            )
    head = ["data", "head", "paper", "BP (paper)", "PILAE", "difference", "BP greedy", "BP end to end", ""]
    return table(head, rows) + "\n\n" + made("table3")


def time_table() -> str:
    """The times behind Figure 2."""
    rows = []
    for name, cell in read("table3")["cells"].items():
        if missing(cell):
            continue
        for head in ("softmax", "SHLN"):
            own = cell["pilae"][head]["seconds"]
            greedy = mean(run["seconds"] + run["heads"][head]["seconds"] for run in cell["greedy"].values())
            best = mean(run["seconds_to_best"] + run["heads"][head]["seconds"] for run in cell["greedy"].values())
            runs = cell["end_to_end"][head].values()
            whole = mean(run["seconds"] for run in runs)
            same = [run["seconds_to_accuracy_of"][head] for run in cell["end_to_end"]["softmax"].values()]
            reached = [s for s in same if s is not None]
            rows.append(
                [
                    figure2.TITLES.get(name, name),
                    head,
                    number(own),
                    number(greedy),
                    f"**{number(greedy / own)}**",
                    number(best / own),
                    number(whole),
                    number(whole / own),
                    until(reached, own, len(same)),
                ]
            )
    head = [
        "data",
        "head",
        "PILAE, seconds",
        "BP greedy, seconds",
        "(a) ratio",
        "to the best epochs",
        "BP end to end until saturated, seconds",
        "ratio",
        "(b) BP end to end (softmax) until PILAE's accuracy / PILAE",
    ]
    return table(head, rows)


def gpu_table() -> str:
    results = read("gpu")
    names = {
        "greedy": "BP greedy, then the same SHLN",
        "softmax": "BP end to end, 784-705-634-10",
        "SHLN": "BP end to end, 784-705-634-4000-10",
    }
    rows = []
    for name, cell in results["cells"].items():
        own = cell["PILAE, SHLN"]
        title, accuracy = figure2.TITLES[name], per_cent(own["accuracy"])
        rows.append([title, "**PILAE, SHLN**", accuracy, number(own["seconds"]), "1", ""])
        for kind, words in names.items():
            found = cell[kind]
            to = [run["seconds_to_pilae"] for run in found["runs"] if run.get("seconds_to_pilae") is not None]
            same = "" if kind == "greedy" else until(to, own["seconds"], len(found["runs"]))
            accuracy = f"{per_cent(found['accuracy'])} ± {100 * found['deviation']:.2f}"
            ratio = number(found["seconds"] / own["seconds"])
            rows.append([title, words, accuracy, number(found["seconds"]), ratio, same])
    head = ["data", "method", "accuracy", "seconds", "ratio", "ratio until PILAE's accuracy"]
    machine = results["machine"]
    foot = (
        f"Rows already on the card. Made by `{results['command']}` ([numbers](results/full/gpu.json)) on one "
        f"{machine['gpu']}, torch {machine['torch']}, at {machine['commit']}."
    )
    return table(head, rows) + "\n\n" + foot


def basic_table() -> str:
    functions, classes = [], []
    for name, cell in read("basic_pil")["cells"].items():
        ranks = ", ".join(map(str, cell["ranks"]))
        if "training error" in cell:
            values = [f"{cell[key]:.2g}" for key in ("training error", "test error", "seconds")]
            values += [f"{cell[key]:.2g}" for key in ("bp training error", "bp test error", "bp seconds")]
            functions.append([name, ranks, *values])
        else:
            values = [per_cent(cell[key]) for key in ("training accuracy", "test accuracy")]
            values += [f"{cell['seconds']:.2g}", per_cent(cell["bp test accuracy"]), f"{cell['bp seconds']:.2g}"]
            classes.append([name, ranks, *values])
    first = ["function", "rank after each layer", "training error", "test error", "seconds"]
    second = ["classes", "rank after each layer", "training accuracy", "test accuracy", "seconds"]
    return "\n\n".join(
        [
            table([*first, "BP training error", "BP test error", "BP seconds"], functions),
            table([*second, "BP test accuracy", "BP seconds"], classes),
            "Errors are root-mean-squares. " + made("basic_pil"),
        ]
    )


def incremental_table() -> str:
    cells = read("incremental")["cells"]
    if any(missing(cell) for cell in cells.values()):
        return "MNIST is not available here."
    steps = {name: {step["rows"]: step for step in cell["steps"]} for name, cell in cells.items()}
    rows = []
    for size in steps["head"]:
        row = [f"{size:,}"]
        for name in cells:
            step = steps[name].get(size)
            row += ["", ""] if step is None else [per_cent(step["accuracy"]), number(step["seconds"])]
        rows.append(row)
    head = ["rows so far"]
    words = {"batch": "batch fit", "head": 'partial_fit, update="head"', "all": 'partial_fit, update="all"'}
    for name in cells:
        head += [words[name], "seconds"]
    return table(head, rows) + "\n\n" + made("incremental")


def ablation_table() -> str:
    cells = read("ablations")["cells"]
    names = list(dict.fromkeys(key.split(": ")[0] for key in cells))
    rows = []
    for group, changes in CHANGES.items():
        for change in changes:
            row = [group, change]
            for name in names:
                cell = cells.get(f"{name}: {group}: {change}", {"missing": ""})
                row += (
                    ["-", "-"] if "missing" in cell else [per_cent(cell["accuracy"]), per_cent(cell["leave_one_out"])]
                )
            rows.append(row)
    head = ["changed", "to"]
    for name in names:
        head += [figure2.TITLES[name], "leave-one-out"]
    return table(head, rows) + "\n\n" + made("ablations")


def until_same(cell: dict, head: str) -> str:
    """End-to-end training of the softmax network until the accuracy of PILAE with that head, in PILAE's times."""
    times = [run["seconds_to_accuracy_of"][head] for run in cell["end_to_end"]["softmax"].values()]
    reached = [seconds for seconds in times if seconds is not None]
    return number(mean(reached) / cell["pilae"][head]["seconds"]) if reached else "never"


def end_to_end() -> str:
    """What end-to-end training reaches in the end."""
    found = []
    for name, cell in read("table3")["cells"].items():
        if "missing" not in cell and name in PAPER_NAMES:
            best = mean(run["accuracy"] for run in cell["end_to_end"]["softmax"].values())
            found.append(f"{per_cent(best)} on {PAPER_NAMES[name]}")
    return f"Left to itself that one ends at {' and '.join(found)}."


def readme() -> str:
    """The first screen's table: the paper's accuracy, ours, back-propagation, and the ratio of times."""
    rows = []
    for name, cell in read("table3")["cells"].items():
        paper = TABLE_3.get(PAPER_NAMES.get(name, ""))
        if missing(cell) or paper is None:
            continue
        own = cell["pilae"]["SHLN"]
        greedy = [run["seconds"] + run["heads"]["SHLN"]["seconds"] for run in cell["greedy"].values()]
        rows.append(
            [
                f"{PAPER_NAMES[name]}, 784-705-634, SHLN",
                per_cent(paper["pilae"]["SHLN"]),
                per_cent(own["accuracy"]),
                spread([run["heads"]["SHLN"]["accuracy"] for run in cell["greedy"].values()]),
                number(own["seconds"]),
                number(mean(greedy) / own["seconds"]),
                until_same(cell, "SHLN"),
            ]
        )
    for name, row, cell in rows_of("table2"):
        if missing(cell) or row is None or name in ("Isolet", "Har 1", "Har 2"):
            continue
        summary = table2.bp_summary(cell)
        rows.append(
            [
                f"{name}, one hidden layer",
                f"{row.accuracy or row.accuracy_best:.2f}",
                per_cent(cell["accuracy"]),
                per_cent(summary["accuracy"]),
                number(cell["seconds"]),
                number(summary["ratio"]),
                number(summary["ratio_same"]),
            ]
        )
    head = ["data, network", "paper", "pilae", "BP", "seconds", "BP until saturated", "BP until pilae's accuracy"]
    foot = (
        "Accuracy in per cent. BP is back-propagation of the same network on the same cores; its times are multiples\n"
        "of pilae's, whose structure is given too. Images: autoencoders trained greedily until saturated, as in the\n"
        f"paper; until pilae's accuracy, a plain softmax network trained end to end.\n{end_to_end()}\n"
        f"Made by `{COMMAND}`; every table of the paper, what differs and why: [RESULTS](experiments/RESULTS.md)."
    )
    return table(head, rows) + "\n\n" + foot


SECTIONS = {
    table_1: "table1",
    width_table: "table2",
    training_table: "table2",
    table_3: "table3",
    time_table: "table3",
    gpu_table: "gpu",
    basic_table: "basic_pil",
    incremental_table: "incremental",
    ablation_table: "ablations",
}
"""What stands in a page, and the part its numbers are of."""


def page() -> str:
    title = "quick version: fewer sets, rows, seeds and epochs" if QUICK else "all of them"
    text = (HERE / "RESULTS.template.md").read_text().replace("{{title}}", title).replace("{{command}}", COMMAND)
    text = text.replace("{{figure}}", f"figure2{'-quick' if QUICK else ''}.svg")
    text = text.replace("{{seeds}}", f"{len(SEEDS)} seed{'s' if len(SEEDS) > 1 else ''}")
    text = text.replace("{{head_width}}", f"{BASE['head_width']:,}").replace(
        "{{shln}}", str(HEADS["SHLN"]["head_width"])
    )
    patience, most = RULE.patience, RULE.epochs
    text = text.replace("{{images}}", f"for {patience} epochs, at most {most}")
    for section, part in SECTIONS.items():
        words = section() if read(part)["cells"] else "Not measured here."
        text = text.replace("{{" + section.__name__ + "}}", words)
    return text


def main() -> None:
    TARGET.write_text(page())
    if not QUICK:
        README.write_text(between(README.read_text(), "experiments", readme()))


if __name__ == "__main__":
    main()
