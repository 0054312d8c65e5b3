"""The tables of docs/mixed.md: scores, the command, intervals, seeds and threads; and what other pages say of them."""

import math
from collections.abc import Iterator
from functools import partial
from statistics import mean, median, stdev

from studies.render import made, named, number, table
from studies.store import read, results_of
from studies.tables.mixed_tables import FOLDS, MESSY

OWN, BOOSTING, LINEAR = "pilae", "boosting", "linear"

OTHERS = {BOOSTING: "skrub's boosting", LINEAR: "skrub's linear model"}

NEAR = 0.005
"""Half a point: so much less is no loss to speak of."""

POINT = 0.01

BROKEN = 0.1
"""A model that is so far behind has not only lost."""

TIMES = 3.0
"""Processor time of the command, in those of the script with boosting, that is hoped for."""

COVERED = 0.85, 0.95
"""Shares of targets that 90% intervals should hold in every fifth of the predictions."""

SCORES = {True: ("accuracy", "log-loss"), False: ("R²", "root mean squared error")}


def results() -> dict:
    return {"tables": {}} | read(results_of("tables", "mixed"))


def figures(cell: dict, model: str, key: str) -> dict[str, float]:
    """By fold, of those that were measured."""
    folds = cell.get("folds", {}).get(model, {})
    return {place: fold[key] for place, fold in folds.items() if key in fold}


def average(cell: dict, model: str, key: str) -> float | None:
    found = figures(cell, model, key)
    return mean(found.values()) if found else None


def gain(cell: dict, other: str) -> tuple[float, float] | None:
    """How much the score is above the other's on the folds that both have, and its standard error over folds, which
    fewer than five say nothing of (NaN)."""
    own, theirs = figures(cell, OWN, "score"), figures(cell, other, "score")
    gains = [own[place] - theirs[place] for place in own if place in theirs]
    if not gains:
        return None
    return mean(gains), stdev(gains) / len(gains) ** 0.5 if len(gains) >= FOLDS else math.nan


def gains(other: str) -> dict[str, float]:
    """Of every table that both have."""
    found = {name: gain(cell, other) for name, cell in results()["tables"].items()}
    return {name: both[0] for name, both in found.items() if both is not None}


def mixed_summary() -> str:
    """pilae against each of the others over all tables."""
    shown = []
    for other, words in OTHERS.items():
        found = gains(other)
        if found:
            worst = min(found, key=found.__getitem__)
            lost = f"{worst} ({100 * found[worst]:+.1f})" if found[worst] < 0 else "-"
            above, near = (sum(each >= least for each in found.values()) for least in (0.0, -NEAR))
            means = [f"{100 * middle(found.values()):+.1f}" for middle in (mean, median)]
            shown.append([words, str(len(found)), str(above), str(near), *means, lost])
    if not shown:
        return "Not measured yet."
    head = "pilae against | tables | as good or better | minus half a point or better"
    head += " | mean, points | median | most lost on"
    return f"{table(head, shown)}\n\n{carried()}"


def carried() -> str:
    """Which tables the mean rests on: boosting breaks down on some."""
    found = gains(BOOSTING)
    far = {name: each for name, each in found.items() if each > BROKEN}
    rest = [each for name, each in found.items() if name not in far]
    words = []
    if far and rest:
        named_ = ", ".join(f"{name} ({100 * each:+.1f})" for name, each in far.items())
        words.append(
            f"The mean against boosting rests on {named_}, where boosting breaks down; without "
            f"{'them' if len(far) > 1 else 'it'} it is {100 * mean(rest):+.1f}."
        )
    new = {name: each for name, each in found.items() if name not in MESSY}
    near = sum(each >= -NEAR for each in new.values())
    if new and len(new) < len(found):
        words.append(
            f"Leaving out the tables of the folder `messy`, on which pilae was worked while they were in sight: minus "
            f"half a point or better on {near} of {len(new)}, median {100 * median(new.values()):+.1f}."
        )
    few = sum(len(figures(cell, OWN, "score")) < FOLDS for cell in results()["tables"].values())
    if few:
        words.append(f"{few} tables have fewer than five folds so far.")
    return "\n".join(words)


def shown_gain(value: float, error: float, folds: int) -> str:
    return f"{100 * value:+.1f} " + (f"({folds} folds)" if math.isnan(error) else f"± {100 * error:.1f}")


def size(cell: dict) -> str:
    words = {
        f"{cell['rows']:,} x {cell['columns']}": True,
        f"{cell['words']} of words": cell["words"],
        "gaps": cell["missing"],
        f"{cell.get('classes', 0)} classes": cell.get("classes", 0) > 2,
    }
    return ", ".join(word for word, said in words.items() if said)


def of_kind(classes: bool) -> dict[str, dict]:
    found = results()["tables"]
    return {name: cell for name, cell in found.items() if ("classes" in cell) == classes and cell.get("folds")}


def mixed_scores(classes: bool) -> str:
    """One row for each table: scores with the best in bold, how far from boosting, losses, processor seconds."""
    models, shown = (OWN, *OTHERS), []
    for name, cell in of_kind(classes).items():
        means = {model: average(cell, model, "score") for model in models}
        words = {model: "-" if value is None else f"{value:.4f}" for model, value in means.items()}
        best = max((word for word in words.values() if word != "-"), key=float, default="")
        scores = [f"**{word}**" if word == best else word for word in words.values()]
        both = gain(cell, BOOSTING)
        apart = "-" if both is None else shown_gain(*both, len(figures(cell, OWN, "score")))
        others = [", ".join(number(average(cell, model, key)) for model in models) for key in ("loss", "seconds")]
        shown.append([name, size(cell), *scores, apart, *others])
    if not shown:
        return "Not measured yet."
    score, loss = SCORES[classes]
    head = f"table | rows x columns | pilae, {score} | boosting | linear | pilae less boosting, points"
    text = table(f"{head} | {loss}: pilae, boosting, linear | processor seconds of a fold", shown)
    return "\n".join([text, "", *failures(of_kind(classes)), foot(of_kind(classes))])


def failures(tables: dict[str, dict]) -> Iterator[str]:
    """Where a model raised an error; once for each table and model."""
    for name, cell in tables.items():
        for model, folds in cell["folds"].items():
            errors = [fold["failed"] for fold in folds.values() if "failed" in fold]
            if errors:
                yield f"{model} failed on {name} ({len(errors)} of {len(folds)} folds): {errors[0]}."


def foot(tables: dict[str, dict]) -> str:
    said = results()
    cells = [fold for cell in tables.values() for folds in cell.get("folds", {}).values() for fold in folds.values()]
    counts = sorted({len(cell["folds"].get(OWN, {})) for cell in tables.values() if "folds" in cell})
    versions = ", ".join(f"{package} {version}" for package, version in said["versions"].items())
    folds = " to ".join(map(str, {counts[0]: "", counts[-1]: ""}))
    return f"{folds} folds each. {made(said['command'], said['machine'], cells)} {versions}."


# --- the command ---


def commands() -> dict[str, dict]:
    found = {name: cell.get("command", {}).get("all", {}) for name, cell in results()["tables"].items()}
    return {name: cell for name, cell in found.items() if OWN in cell}


def ratios() -> list[float]:
    return [cell[OWN]["seconds"] / cell[BOOSTING]["seconds"] for cell in commands().values()]


def mixed_command() -> str:
    found = commands()
    if not found:
        return "Not measured yet."
    shown = []
    for name, cell in found.items():
        seconds, megabytes, loading = (
            [cell[model][key] for model in (OWN, BOOSTING)] for key in ("seconds", "megabytes", "load_seconds")
        )
        times = f"{seconds[0] / seconds[1]:.1f}"
        each = [f"{value:.2f}" for pair in (seconds, megabytes, loading) for value in pair]
        shown.append([name, *each[:2], times, *each[2:]])
    head = "table | `pilae fit`, processor seconds | script with boosting | times | model file, MB | its pickle"
    within = sum(ratio <= TIMES for ratio in ratios())
    text = table(f"{head} | load, processor seconds | its pickle", shown)
    said = results()
    return f"""{text}

Within {TIMES:g} times the script on {within} of {len(found)} tables; median {median(ratios()):.1f}.
{made(said["command"], said["machine"], found.values())}"""


# --- intervals, seeds ---


def fifths(cell: dict) -> list[tuple[int, int]]:
    """Targets inside 90% intervals, and all, by fifths of the prediction, over all folds."""
    folds = figures(cell, OWN, "coverage").values()
    return [tuple(map(sum, zip(*parts, strict=True))) for parts in zip(*folds, strict=True)]  # type: ignore[misc]


def is_covered(inside: int, count: int) -> bool:
    """Whether a share is near 90%, or less than two standard errors from it."""
    share, error = inside / count, (0.9 * 0.1 / count) ** 0.5
    return COVERED[0] <= share <= COVERED[1] or abs(share - 0.9) <= 2 * error


def mixed_coverage() -> str:
    shown, right, all_ = [], 0, 0
    for name, cell in of_kind(False).items():
        parts = fifths(cell)
        if parts:
            good = [is_covered(*part) for part in parts]
            right, all_ = right + sum(good), all_ + len(good)
            inside, count = map(sum, zip(*parts, strict=True))
            words = [f"{a / n:.2f}" if ok else f"**{a / n:.2f}**" for (a, n), ok in zip(parts, good, strict=True)]
            shown.append([name, f"{inside / count:.3f}", *words])
    if not shown:
        return "Not measured yet."
    head = "90% intervals on | all | lowest fifth of predictions | second | third | fourth | highest"
    low, high = COVERED
    return f"""{table(head, shown)}

{right} of {all_} fifths lie between {low} and {high} or within two standard errors of 0.90; the others are in bold."""


def mixed_seeds() -> str:
    """The spread over seeds, beside the standard error of the score on that many rows."""
    shown, steady = [], 0
    for name, cell in results()["tables"].items():
        found = {seed: each for seed, each in cell.get("seeds", {}).items() if "score" in each}
        scores = [each["score"] for seed, each in found.items() if seed.isdigit()]
        if len(scores) < 2:
            continue
        apart, error = max(scores) - min(scores), max(each["standard_error"] for each in found.values())
        good = apart <= max(POINT, 2 * error)
        steady += good
        other = found.get("two threads")
        threads = "-" if other is None else f"{100 * abs(other['score'] - found['0']['score']):.2f}"
        spread = f"{100 * apart:.1f}" if good else f"**{100 * apart:.1f}**"
        ends = f"{min(scores):.4f} to {max(scores):.4f}"
        shown.append([name, str(len(scores)), ends, spread, f"{200 * error:.1f}", threads])
    if not shown:
        return "Not measured yet."
    head = "first fold of | seeds | score | apart, points | two standard errors | two threads beside one, points"
    text = table(head, shown)
    return (
        f"{text}\n\nWithin a point or two standard errors on {steady} of {len(shown)} tables; the others are in bold."
    )


# --- other pages ---


def choose_mixed() -> str:
    """The same in sentences."""
    found = {other: gains(other) for other in OTHERS}
    if not all(found.values()):
        return "Not measured yet."
    words = []
    for other, by in OTHERS.items():
        near = sum(each >= -NEAR for each in found[other].values())
        words.append(
            f"Beside {by}: half a point below or better on {near} of {len(found[other])} tables, "
            f"{100 * median(found[other].values()):+.1f} points on the median one."
        )
    lost = sorted((each, name) for name, each in found[BOOSTING].items() if each < -2 * NEAR)[:5]
    if lost:
        words.append(
            f"Boosting wins most clearly on {', '.join(f'{name} ({100 * each:+.1f})' for each, name in lost)}."
        )
    if ratios():
        words.append(f"`pilae fit` takes {median(ratios()):.1f} times the processor time of the script (median).")
    return "\n".join(words)


PAGE = named(mixed_summary, mixed_command, mixed_coverage, mixed_seeds) | {
    "mixed_scores_classification": partial(mixed_scores, True),
    "mixed_scores_regression": partial(mixed_scores, False),
}
