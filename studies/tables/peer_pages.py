"""The tables of PEERS.md: mean ranks, pilae against each of the others, every table, pilae's own estimates."""

from collections.abc import Iterator
from functools import partial
from statistics import mean, median

from studies.render import made, number, table
from studies.store import read, results_of
from studies.tables.peers import PATIENCE
from studies.tables.ranks import (
    OWN,
    Compared,
    average,
    common,
    compare,
    critical_difference,
    figures,
    friedman,
    kind_of,
)

SCORES = {True: "accuracy", False: "R²"}


def results() -> dict:
    return read(results_of("tables", "peers"))


def ranked(found: Compared) -> dict[str, float]:
    return dict(zip(found.models, found.ranks, strict=True))


def seconds(measured: dict[str, dict], model: str) -> list[float]:
    """Of one fold of every table that a model has."""
    found = [figures(cell, model, "seconds").values() for cell in measured.values()]
    return [mean(values) for values in found if values]


def first_places(found: Compared) -> dict[str, int]:
    """On how many tables nobody is better, to four digits."""
    scores = found.scores.round(4)
    return dict(zip(found.models, (scores == scores.max(axis=1, keepdims=True)).sum(axis=0), strict=True))


def summary(classes: bool) -> str:
    """One row for each model, the best mean rank first."""
    said = results()
    measured, found = kind_of(said, classes), compare(said, classes)
    if not found.models:
        return "Not measured yet."
    losses = compare(said, classes, "log_loss") if classes else None
    by_loss = ranked(losses) if losses else {}
    mean_loss = dict(zip(losses.models, -losses.scores.mean(axis=0), strict=True)) if losses else {}
    first = first_places(found)
    shown = [
        {
            "name": f"**{name}**" if name == OWN else name,
            "rank": rank,
            "score": mean(scores),
            "middle": median(scores),
            "first": first[name],
            "loss": mean_loss.get(name),
            "loss_rank": by_loss.get(name),
            "median": median(seconds(measured, name)),
            "longest": max(seconds(measured, name)),
        }
        for name, rank, scores in zip(found.models, found.ranks, found.scores.T.tolist(), strict=True)
    ]
    loss = (" | mean log-loss | rank by log-loss", " | {loss:.3f} | {loss_rank:.2f}") if classes else ("", "")
    head = f"model | mean rank | mean {SCORES[classes]} | median | best on{loss[0]} | seconds, median table | longest"
    line = f"{{name}} | {{rank:.2f}} | {{score:.4f}} | {{middle:.4f}} | {{first}}{loss[1]} | "
    text = table(head, sorted(shown, key=lambda row: row["rank"]), line + "{median:short} | {longest:short}")
    return f"{text}\n\n{foot(said, found, classes)}"


def both() -> str:
    """Mean ranks over all tables, by accuracy or R², and all seconds."""
    said = results()
    found, measured = compare(said, None), kind_of(said, None)
    if not found.models:
        return "Not measured yet."
    first = first_places(found)
    shown = [
        [f"**{name}**" if name == OWN else name, f"{rank:.2f}", str(first[name]), number(sum(seconds(measured, name)))]
        for name, rank in sorted(ranked(found).items(), key=lambda pair: pair[1])
    ]
    difference = critical_difference(len(found.models), len(found.tables))
    return (
        f"{table('model | mean rank | best on | seconds for a fold of every table', shown)}\n\n"
        f"{len(found.tables)} tables; critical difference (Nemenyi, 5%) {difference:.2f}{friedman(found)}."
    )


def foot(said: dict, found: Compared, classes: bool) -> str:
    """On how many tables and folds, how large a difference must be, who is not ranked and why."""
    measured = kind_of(said, classes)
    folds = [len(common(measured[name], found.models, "score")) for name in found.tables]
    few, many = min(folds), max(folds)
    difference = critical_difference(len(found.models), len(found.tables))
    words = [
        f"Ranks by {SCORES[classes]} over {len(found.tables)} tables, {few if few == many else f'{few} to {many}'} "
        f"{'fold' if many == 1 else 'folds'} each; "
        f"critical difference (Nemenyi, 5%) {difference:.2f}{friedman(found)}."
    ]
    for name in said["models"]:
        if name not in found.models:
            count = sum(bool(figures(cell, name, "score")) for cell in measured.values())
            words.append(f"{name} has {count} of {len(measured)} tables and is not ranked.")
    words += [f"{place} failed: {why}." for place, why in failures(measured)]
    words += [
        f"{place} needed {longest:.0f} seconds for one fold and got no further one."
        for place, longest in slow(measured)
    ]
    cells = [cell for one in measured.values() for model in one["models"].values() for cell in model.values()]
    versions = {entry["package"]: entry["version"] for entry in said["models"].values()}
    packages = ", ".join(f"{package} {version}" for package, version in versions.items())
    return "\n".join([*words, f"{made(said['command'], said['machine'], cells)} {packages}."])


def failures(measured: dict[str, dict]) -> Iterator[tuple[str, str]]:
    """Where a model raised an error, and which; once for each table."""
    for name, cell in measured.items():
        for model, folds in cell["models"].items():
            errors = [fold["failed"] for fold in folds.values() if "failed" in fold]
            if errors:
                yield f"{model} on {name} ({len(errors)} of {len(folds)} folds)", errors[0]


def slow(measured: dict[str, dict]) -> Iterator[tuple[str, float]]:
    """Where a model was given up for its time, and how long it took."""
    for name, cell in measured.items():
        for model in cell["models"]:
            longest = max(figures(cell, model, "seconds").values(), default=0.0)
            if longest > PATIENCE:
                yield f"{model} on {name}", longest


def against(classes: bool) -> str:
    """pilae against each of the others: on how many tables it is better, equal and worse, and where it loses most."""
    found = compare(results(), classes)
    if OWN not in found.models:
        return f"{OWN} is not measured yet."
    own, shown = found.scores[:, found.models.index(OWN)], []
    for k, name in enumerate(found.models):
        if name != OWN:
            gains = (own - found.scores[:, k]).round(4)
            worst = int(gains.argmin())
            shown.append(
                [
                    name,
                    *(str(int(sign.sum())) for sign in (gains > 0, gains == 0, gains < 0)),
                    f"{gains.mean():+.4f}",
                    f"{found.tables[worst]} ({gains[worst]:+.4f})" if gains[worst] < 0 else "-",
                ]
            )
    return table(f"{OWN} against | better | equal | worse | mean difference of {SCORES[classes]} | most lost on", shown)


def every_table(classes: bool) -> str:
    """One row for each table, one column for each model: means over the folds that all have, the best in bold."""
    said = results()
    shown = []
    for name, cell in kind_of(said, classes).items():
        having = [model for model in said["models"] if figures(cell, model, "score")]
        folds = common(cell, having, "score")
        means = {model: f"{average(cell, model, 'score', folds):.4f}" for model in having if folds}
        best = max(means.values(), key=float) if means else ""
        cells = [f"**{value}**" if value == best else value for value in (means.get(m, "-") for m in said["models"])]
        shown.append([name, size(cell), *cells])
    return table(f"table | rows x columns | {' | '.join(said['models'])}", shown)


def size(cell: dict) -> str:
    """Rows and columns, how many of them are categories, and classes."""
    kinds, classes = cell["categories"], cell.get("classes", 0)
    words = {
        f"{cell['rows']:,} x {cell['columns']}": True,
        f"{kinds} categorical": kinds,
        "missing values": cell["missing"],
        f"{classes} classes": classes > 2,
    }
    return ", ".join(word for word, said in words.items() if said)


def estimates() -> str:
    """pilae's leave-one-out score beside its test score on the same folds, on every table."""
    shown, apart = [], []
    for name, cell in results()["tables"].items():
        loo, score = (figures(cell, OWN, key) for key in ("loo", "score"))
        if loo:
            said, found = mean(loo.values()), mean(score[fold] for fold in loo)
            apart.append(said - found)
            shown.append([name, SCORES["classes" in cell], f"{said:.4f}", f"{found:.4f}", f"{said - found:+.4f}"])
    if not shown:
        return f"{OWN} is not measured yet."
    text = table("table | score | leave-one-out | test | leave-one-out above test", shown)
    return f"{text}\n\nOn average {mean(apart):+.4f}; {number(mean(map(abs, apart)))} without the sign."


PAGE = {
    f"peers_{name}_{kind}": partial(make, classes)
    for kind, classes in (("classification", True), ("regression", False))
    for name, make in (("summary", summary), ("against", against), ("tables", every_table))
} | {"peers_both": both, "peers_estimates": estimates}
