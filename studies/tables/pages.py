"""Tables of tables: with no argument beside scikit-learn's classifiers, and what goes beyond the paper."""

from statistics import mean, stdev

from studies.render import made, named, rows, table
from studies.store import read, results_of
from studies.tables import mixed_pages, peer_pages

OWN, MLP, BOOSTING = "PILAEClassifier", "MLPClassifier", "HistGradientBoosting"


def tabular_results() -> tuple[dict[str, dict], list[str]]:
    """The sets with what was measured on them, and all methods."""
    sets = read(results_of("tables", "tabular"))["sets"]
    return sets, list(max((found["methods"] for found in sets.values()), key=len))


def compared(found: dict, methods: list[str]) -> list[str]:
    """Accuracy and seconds of these methods on one set, the best in bold."""
    shown = {name: f"{found['methods'][name]['accuracy']:.4f}" for name in methods if name in found["methods"]}
    cells = []
    for name in methods:
        bold = "**" if shown.get(name) == max(shown.values()) else ""
        cells.append(f"{bold}{shown[name]}{bold} ({found['methods'][name]['seconds']:.2f} s)" if name in shown else "-")
    return cells


def means() -> tuple[int, list[dict]]:
    """Over the sets that all methods but boosting have: how many, and each method's mean accuracy and all seconds."""
    sets, methods = tabular_results()
    methods.remove(BOOSTING)
    whole = [found["methods"] for found in sets.values() if set(methods) <= set(found["methods"])]
    sums = {name: [sum(found[name][key] for found in whole) for key in ("accuracy", "seconds")] for name in methods}
    return len(whole), [{"name": name, "accuracy": a / len(whole), "seconds": s} for name, (a, s) in sums.items()]


def tabular() -> str:
    """One row for each set, one column for each method: accuracy, and seconds to fit."""
    sets, methods = tabular_results()
    shown = [
        [name, f"{s['rows']} x {s['columns']}", *compared(s, methods), f"{s['methods'][OWN]['loo']:.4f}"]
        for name, s in sets.items()
    ]
    count, averages = means()
    return f"""{table(f"data | rows x columns | {' | '.join(methods)} | leave-one-out", shown)}

Means over the {count} sets that all have: {", ".join("{name} {accuracy:.4f}".format(**row) for row in averages)}. \
Seconds in all: {", ".join("{name} {seconds:.1f}".format(**row) for row in averages)}.
{made("python -m studies.tables.tabular", read(results_of("tables", "tabular"))["machine"])}"""


def seeds() -> str:
    """Mean, deviation and range of the accuracies of all seeds."""
    results = read(results_of("tables", "seeds"))
    shown = [
        [
            name,
            f"{mean(found['accuracy']):.4f}",
            f"{100 * stdev(found['accuracy']):.2f}",
            f"{100 * (max(found['accuracy']) - min(found['accuracy'])):.1f}",
            f"{100 * 2 * found['standard_error']:.1f}",
            f"{100 * (mean(found['loo']) - mean(found['accuracy'])):+.1f}",
        ]
        for name, found in results["sets"].items()
    ]
    head = (
        "data | mean accuracy | deviation, points | range | two standard errors of the test | leave-one-out minus test"
    )
    return f"{table(head, shown)}\n\n{made(results['command'], results['machine'], results['sets'].values())}"


def choose_means() -> str:
    count, averages = means()
    own, mlp = (next(row for row in averages if row["name"] == name) for name in (OWN, MLP))
    shown = table(
        f" | mean accuracy | seconds for all {count}",
        sorted(averages, key=lambda row: -row["accuracy"]),
        "`{name}` | {accuracy:.4f} | {seconds:.1f}",
    )
    return (
        f"{shown}\n\nThat is {100 * (own['accuracy'] - mlp['accuracy']):.1f} points above the MLP on average, at "
        f"{own['seconds'] / mlp['seconds']:.1f} times its time."
    )


def chosen(names: tuple[str, ...], methods: list[str]) -> str:
    sets, _ = tabular_results()
    head = "".join(f" | `{method}`" for method in methods)
    return table(head, [[name, *compared(sets[name], methods)] for name in names])


def choose_boosting() -> str:
    return chosen(("segment", "spambase", "sylva_agnostic_train"), [OWN, BOOSTING])


def choose_linear() -> str:
    names = ("har_subset735", "mfeat", "internet_ads", "sylva_agnostic_train")
    return chosen(names, [OWN, "RidgeClassifierCV", "LogisticRegression"])


def choose_small() -> str:
    shown = []
    for name, found in tabular_results()[0].items():
        accuracy = {method: result["accuracy"] for method, result in found["methods"].items()}
        own = accuracy.pop(OWN)
        best = max(accuracy, key=accuracy.__getitem__)
        if found["rows"] < 500:
            shown.append([name, str(found["rows"]), f"{own:.4f}", f"{accuracy[best]:.4f}, `{best}`"])
    return table(f" | training rows | `{OWN}` | best of the others", shown)


def choose_wide() -> str:
    sets, _ = tabular_results()
    names = ("segment", "spambase", "sylva_agnostic_train", "mfeat", "coil20_32x32", "internet_ads")
    return table(
        f" | columns | `{OWN}` | `{MLP}`",
        rows({name: sets[name] for name in names}),
        f"{{name}} | {{columns:,}} | {{methods[{OWN}][seconds]:.2f}} s | {{methods[{MLP}][seconds]:.2f}} s",
    )


def choose_strangers() -> str:
    own = tabular_results()[0]["isolet_subset"]["methods"][OWN]
    return (
        f"isolet_subset, whose test speakers are not in the training part: {own['loo']:.4f} leave-one-out, "
        f"{own['accuracy']:.4f} on the test part."
    )


def beyond(part: str) -> tuple[dict, str]:
    """Results, and where they come from."""
    found = read(results_of("tables", "beyond"))[part]
    commit = found.pop("commit")
    return found, f"Made by `python -m studies.tables.beyond {part}` at commit {commit}."


def beyond_residual() -> str:
    found, foot = beyond("residual")
    shown = table(
        "two layers | plain stack | skip or two stacks, where leave-one-out is lower",
        rows(found["sets"]),
        "{name} | {plain:.4f} | {chosen:.4f}",
    )
    gain, error = 100 * found["mean_gain"], 100 * found["paired_standard_error"]
    return f"""{shown}

Not worse on {found["not_worse"]} of {len(found["sets"])} sets; {gain:+.2f} points on average, with a paired standard \
error of {error:.2f}.
{foot}"""


def beyond_sparse() -> str:
    found, foot = beyond("sparse")
    [(name, cases)] = found.items()
    shown = table(
        "`decoder_l1` | weights that are not zero, by layer | of all | test accuracy | seconds",
        [case | {"layers": [f"{100 * density:.0f}%" for density in case["density"]]} for case in cases],
        "{decoder_l1:g} | {layers:list} | {density_of_all:.0%} | {test_accuracy:.4f} | {seconds:.0f}",
    )
    return f"{name}:\n\n{shown}\n\n{foot}"


def beyond_robust() -> str:
    found, foot = beyond("robust")
    mean = found["mean"]
    return (
        "Friedman's first function, 2,000 rows, one target in twenty moved by 20 to 100 standard deviations of the "
        f"noise: root-mean-square error on clean rows {mean['squared']:.2f} with squared error, {mean['robust']:.2f} "
        f'with `loss="robust"`, {mean["clean"]:.2f} had the targets been right (means of {len(found["runs"])}). {foot}'
    )


PAGES = {
    "studies/README.md": named(tabular, seeds),
    "studies/tables/PEERS.md": peer_pages.PAGE,
    "docs/mixed.md": mixed_pages.PAGE,
    "docs/choose.md": named(choose_means, choose_boosting, choose_small, choose_linear, choose_wide, choose_strangers)
    | named(mixed_pages.choose_mixed),
    "docs/beyond.md": named(beyond_residual, beyond_sparse, beyond_robust),
}
