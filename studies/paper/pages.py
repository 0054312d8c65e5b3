"""The paper's tables with ours beside them: RESULTS.md, the quick version of it, and the README's first table.

Every table is made of one kind of results, "full" or "quick".
"""

from functools import partial
from statistics import mean

from studies.data import TITLES
from studies.paper.notes import NOTES
from studies.paper.paper import DATA, PARTS, TABLE_3, TABLES, Row
from studies.render import number, per_cent, place, rows, spread, table
from studies.store import read, results_of

PAPER_NAMES = {name: paper for paper, name in reversed(DATA.items())}


def results(kind: str, part: str) -> dict:
    return read(results_of("paper", f"{kind}/{part}"))


def cells(kind: str, part: str) -> dict[str, dict]:
    return results(kind, part)["cells"]


def made(kind: str, part: str) -> str:
    """The line under a table: how, where, at which commits."""
    found = results(kind, part)
    machine = found["machine"]
    commits = sorted({cell["commit"] for cell in found["cells"].values() if "missing" not in cell})
    return (
        f"Made by `{found['command']}` ([numbers](results/{kind}/{part}.json)) on {place(machine)}, "
        f"torch {machine['torch']}, numpy {machine['versions']['numpy']}, at {', '.join(commits)}."
    )


def until(seconds: list[float | None], own: float) -> str:
    """The ratio of the seconds until a certain accuracy to our own, and how many runs came that far."""
    reached = [value for value in seconds if value is not None]
    return f"{number(mean(reached) / own)} ({len(reached)} of {len(seconds)} runs)" if reached else "never reached"


# --- Tables I and II ---


def data_rows(kind: str, part: str) -> list[dict]:
    """Cells of Tables I and II with the paper's row; a part of a set stands under it, without one."""
    measured, found = cells(kind, part), []
    for row in TABLES:
        name = DATA[row.name]
        if name in measured:
            found.append({"name": row.name, "paper": row, **measured[name]})
            if PARTS.get(name) in measured and row.name != "Har 1":
                blank = Row(PARTS[name], *[None] * (len(Row._fields) - 1))
                found.append({"name": blank.name, "paper": blank, **measured[blank.name]})
    for row in found:
        row["note"] = note(kind, part, row["name"])
    return found


def note(kind: str, part: str, name: str) -> str:
    return NOTES.get((part, name), "") if kind == "full" else ""  # they are about the whole tables


def table_1(kind: str) -> str:
    head = "data | rows (paper) | features (paper) | rank (paper) | rows | features | rank (SVD) | rank (Gram) | "
    line = "{name} | {paper.rows} | {paper.features} | {paper.rank} | {rows} | {features} | {rank by SVD} | {rank}"
    return table(head, data_rows(kind, "table1"), f"{line} | {{note}}", known=4) + "\n\n" + made(kind, "table1")


def width_table(kind: str) -> str:
    """Table II, first part: the width, by three ways."""
    found = data_rows(kind, "table2")
    for row in found:
        if "missing" not in row:
            low, high = min(row["widths"]), max(row["widths"])
            brute = row.get("brute_force")
            row |= {
                "path": f"{low}" if low == high else f"{low} to {high}",
                "brute": of_width(brute),
                "brute_seconds": brute and brute["seconds"] / row["folds"],
                "by_formula": of_width(row.get("formula")),
            }
    head = (
        "data | best width (paper) | its accuracy (paper) | by formula (paper) | width path | accuracy | "
        "seconds, search and all widths | brute force: accuracy | seconds | formula: accuracy"
    )
    line = (
        "{name} | {paper.best} | {paper.accuracy_best:.2f} | {paper.predicted} | {path} | {accuracy:pc} | "
        "{seconds_with_search:short} | {brute} | {brute_seconds:short} | {by_formula}"
    )
    return table(head, found, line, known=4)


def of_width(found: dict | None) -> str | None:
    if found is None or found["accuracy"] is None:
        return found and str(found["width"])
    return f"{found['width']}: {per_cent(found['accuracy'])}"


def trained_rows(kind: str) -> list[dict]:
    """Rows of Table II with those of back-propagation summed up: folds, then seeds; and the two ratios."""
    found = data_rows(kind, "table2")
    for row in found:
        paper = row["paper"]
        row["reference"] = paper.accuracy or paper.accuracy_best
        row["paper_ratio"] = paper.seconds and paper.seconds_bp / paper.seconds
        if "missing" not in row:
            folds = [fold for runs in row["bp"].values() for fold in runs]
            same = [fold["seconds_to_same_accuracy"] for fold in folds]
            row |= {
                "difference": row["reference"] and 100 * row["accuracy"] - row["reference"],
                "bp": [mean(fold["accuracy"] for fold in runs) for runs in row["bp"].values()],
                "bp_seconds": mean(fold["seconds"] for fold in folds),
                "same": until(same, row["seconds"]).removesuffix(f" ({len(same)} of {len(same)} runs)"),
            }
            row["ratio"], row["ratio_with_search"] = (
                row["bp_seconds"] / row[key] for key in ("seconds", "seconds_with_search")
            )
    return found


def training_table(kind: str) -> str:
    """Table II, second part: PIL and back-propagation at the same width."""
    head = (
        "data | accuracy (paper) | BP (paper) | time BP / PIL (paper) | accuracy | difference | BP | seconds | "
        "seconds BP | (a) BP until saturated / PIL | (a) with PIL's search counted | "
        "(b) BP until PIL's accuracy / PIL | "
    )
    line = (
        "{name} | {reference:.2f} | {paper.accuracy_bp:.4g} | {paper_ratio:short} | {accuracy:pc} | {difference:+.2f}"
        " | {bp:spread} | {seconds:short} | {bp_seconds:short} | **{ratio:short}** | {ratio_with_search:short} | {same}"
        " | {note}"
    )
    return table(head, trained_rows(kind), line, known=4) + "\n\n" + made(kind, "table2")


# --- Table III and Figure 2 ---


def image_rows(kind: str) -> list[dict]:
    """One for each set and head of Table III, with the times behind Figure 2."""
    found = []
    for name, cell in cells(kind, "table3").items():
        paper = TABLE_3.get(PAPER_NAMES.get(name, ""))
        for head in ("softmax", "SHLN"):
            row = {"set": name, "name": PAPER_NAMES.get(name, TITLES.get(name)), "head": head, **cell}
            row |= {key: paper and paper[key][head] for key in ("pilae", "bp")}
            row["note"] = note(kind, "table3", f"{name} {head}")
            found.append(row)
            if "missing" in cell:
                continue
            ours, greedy = cell["pilae"][head], cell["greedy"].values()
            end, softmax = (cell["end_to_end"][key].values() for key in (head, "softmax"))
            row |= {
                "title": TITLES[name],
                "accuracy": ours["accuracy"],
                "difference": paper and 100 * (ours["accuracy"] - row["pilae"]),
                "greedy": [run["heads"][head]["accuracy"] for run in greedy],
                "end": [run["accuracy"] for run in end],
                "softmax": [run["accuracy"] for run in softmax],
                "seconds": ours["seconds"],
                "greedy_seconds": mean(run["seconds"] + run["heads"][head]["seconds"] for run in greedy),
                "best_seconds": mean(run["seconds_to_best"] + run["heads"][head]["seconds"] for run in greedy),
                "end_seconds": mean(run["seconds"] for run in end),
                "same": until([run["seconds_to_accuracy_of"][head] for run in softmax], ours["seconds"]),
            }
            row["ratio"], row["best_ratio"], row["end_ratio"] = (
                row[key] / ours["seconds"] for key in ("greedy_seconds", "best_seconds", "end_seconds")
            )
    return found


def table_3(kind: str) -> str:
    head = "data | head | paper | BP (paper) | PILAE | difference | BP greedy | BP end to end | "
    line = (
        "{name} | {head} | {pilae:pc} | {bp:pc} | {accuracy:pc} | {difference:+.2f} | {greedy:spread} | {end:spread} | "
        "{note}"
    )
    return table(head, image_rows(kind), line, known=4) + "\n\n" + made(kind, "table3")


def time_table(kind: str) -> str:
    """The times behind Figure 2."""
    head = (
        "data | head | PILAE, seconds | BP greedy, seconds | (a) ratio | to the best epochs | "
        "BP end to end until saturated, seconds | ratio | (b) BP end to end (softmax) until PILAE's accuracy / PILAE"
    )
    line = (
        "{title} | {head} | {seconds:short} | {greedy_seconds:short} | **{ratio:short}** | {best_ratio:short} | "
        "{end_seconds:short} | {end_ratio:short} | {same}"
    )
    return table(head, [row for row in image_rows(kind) if "missing" not in row], line)


def gpu_table(kind: str) -> str:
    found = results(kind, "gpu")
    machine, shown = found["machine"], []
    words = {
        "greedy": "BP greedy, then the same SHLN",
        "softmax": "BP end to end, 784-705-634-10",
        "SHLN": "BP end to end, 784-705-634-4000-10",
    }
    for name, cell in found["cells"].items():
        own = cell["PILAE, SHLN"]
        shown.append((TITLES[name], "**PILAE, SHLN**", per_cent(own["accuracy"]), number(own["seconds"]), "1"))
        for method, title in words.items():
            runs, seconds = cell[method]["runs"], cell[method]["seconds"]
            same = "" if method == "greedy" else until([run["seconds_to_pilae"] for run in runs], own["seconds"])
            accuracy = spread([run["accuracy"] for run in runs])
            shown.append((TITLES[name], title, accuracy, number(seconds), number(seconds / own["seconds"]), same))
    shown_table = table("data | method | accuracy | seconds | ratio | ratio until PILAE's accuracy", shown)
    return (
        f"{shown_table}\n\nRows already on the card. Made by `python -m studies.paper.gpu` "
        f"([numbers](results/{kind}/gpu.json)) on one {machine['gpu']}, torch {machine['torch']}, "
        f"at {machine['commit']}."
    )


# --- the rest of the page ---


def basic_table(kind: str) -> str:
    found = rows(cells(kind, "basic_pil"))
    functions = table(
        "function | rank after each layer | training error | test error | seconds | BP training error | BP test error"
        " | BP seconds",
        [row for row in found if "test error" in row],
        "{name} | {ranks:list} | {training error:.2g} | {test error:.2g} | {seconds:.2g} | {bp training error:.2g} | "
        "{bp test error:.2g} | {bp seconds:.2g}",
    )
    classes = table(
        "classes | rank after each layer | training accuracy | test accuracy | seconds | BP test accuracy | BP seconds",
        [row for row in found if "test accuracy" in row],
        "{name} | {ranks:list} | {training accuracy:pc} | {test accuracy:pc} | {seconds:.2g} | "
        "{bp test accuracy:pc} | {bp seconds:.2g}",
    )
    return f"{functions}\n\n{classes}\n\nErrors are root-mean-squares. {made(kind, 'basic_pil')}"


def incremental_table(kind: str) -> str:
    measured = cells(kind, "incremental")
    if any("missing" in cell for cell in measured.values()):
        return "MNIST is not available here."
    steps = {name: {step["rows"]: step for step in cell["steps"]} for name, cell in measured.items()}
    shown = []
    for size in steps["head"]:
        shown.append([f"{size:,}"])
        for name in measured:
            step = steps[name].get(size)
            shown[-1] += ["", ""] if step is None else [per_cent(step["accuracy"]), number(step["seconds"])]
    words = {"batch": "batch fit", "head": 'partial_fit, update="head"', "all": 'partial_fit, update="all"'}
    head = "rows so far" + "".join(f" | {words[name]} | seconds" for name in measured)
    return table(head, shown) + "\n\n" + made(kind, "incremental")


def ablation_table(kind: str) -> str:
    """A cell is named "data: what is changed: to what"."""
    measured = cells(kind, "ablations")
    changes: dict[str, dict[str, dict]] = {}
    for name, cell in measured.items():
        data, change = name.split(": ", 1)
        changes.setdefault(change, {})[data] = cell
    names = list(next(iter(changes.values())))
    shown = [
        [*change.split(": ", 1)]
        + [per_cent(found.get(name, {}).get(key)) for name in names for key in ("accuracy", "leave_one_out")]
        for change, found in changes.items()
    ]
    head = "changed | to" + "".join(f" | {TITLES[name]} | leave-one-out" for name in names)
    return table(head, shown) + "\n\n" + made(kind, "ablations")


# --- the README ---


def first_table() -> str:
    """The paper's accuracy, ours, back-propagation, and the ratio of times."""
    images = [row for row in image_rows("full") if "missing" not in row and row["pilae"] and row["head"] == "SHLN"]
    tables = [row for row in trained_rows("full") if "missing" not in row and row["reference"]]
    tables = [row for row in tables if row["name"] not in ("Isolet", "Har 1", "Har 2")]
    shown = [
        row | {"network": "784-705-634, SHLN", "reference": 100 * row["pilae"], "bp": spread(row["greedy"])}
        for row in images
    ] + [row | {"network": "one hidden layer", "bp": per_cent(mean(row["bp"]))} for row in tables]
    for row in shown:
        row["same"] = row["same"].partition(" (")[0]
    shown_table = table(
        "data, network | paper | pilae | BP | seconds | BP until saturated | BP until pilae's accuracy",
        shown,
        "{name}, {network} | {reference:.2f} | {accuracy:pc} | {bp} | {seconds:short} | {ratio:short} | {same}",
    )
    ends = " and ".join(f"{per_cent(mean(row['softmax']))} on {row['name']}" for row in images)
    return f"""{shown_table}

Accuracy in per cent. BP is back-propagation of the same network on the same cores; its times are multiples
of pilae's, whose structure is given too. Images: autoencoders trained greedily until saturated, as in the
paper; until pilae's accuracy, a plain softmax network trained end to end.
Left to itself that one ends at {ends}.
Made by `make tables`; every table of the paper, what differs and why: [RESULTS](paper/RESULTS.md)."""


QUICK = (table_1, width_table, training_table, table_3, time_table, basic_table, incremental_table, ablation_table)

PAGES = {
    "studies/README.md": {"paper": first_table},
    "studies/paper/RESULTS.md": {make.__name__: partial(make, "full") for make in (*QUICK, gpu_table)},
    "studies/paper/QUICK.md": {make.__name__: partial(make, "quick") for make in QUICK},
}
