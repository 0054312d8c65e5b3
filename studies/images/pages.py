"""The table of images: patch features on two cores and on a GPU."""

from studies.data import TITLES
from studies.render import commits, gigabytes, named, place, rows, table
from studies.store import read, results_of

PUBLISHED = {
    "mnist": "0.9963 (shallow convolution)",
    "fashion_mnist": "-",
    "svhn_gray": "0.960 (the same, in colour, with the extra images)",
    "cifar10": "0.759 (the same); 0.869 (whitened patches, 79 hours of four GPUs); 0.912 (neural kernel, many GPUs)",
}
"""Without back-propagation; docs/images.md says by whom."""

PLACES = {"cpu": ("two cores", ""), "cuda": ("one GPU", " --cuda")}


def patches() -> str:
    results = read(results_of("images", "patches"))
    shown, made = [], []
    for kind, (where, option) in PLACES.items():
        machine, cases = results[f"{kind}_machine"], results[kind]
        for row in rows({TITLES[name]: case for name, case in cases.items()}):
            shown.append(row | {"where": where, "head": "ridge" if kind == "cpu" else f"{row['head']:,} neurons"})
        made.append(_made(f"studies.images.patches{option}", machine, cases))
    head = "images | where | test accuracy | leave-one-out | seconds | features, head"
    line = "{name} | {where} | {test_accuracy:.4f} | {leave_one_out:.4f} | {seconds:.1f} | {features:,}, {head}"
    return f"{table(head, shown, line)}\n\nMade by {'; '.join(made)}."


def _made(command: str, machine: dict, cases: dict) -> str:
    """By which command, where, of what, and the most memory of the process that any set took."""
    peak = max(cases.values(), key=lambda case: case["peak_megabytes"])
    where = f"{peak.get('gpu', place(machine))}, at {commits(machine, cases.values())}"
    return f"`python -m {command}` on {where}, at most {gigabytes(peak['peak_megabytes'], 1)}"


def angles() -> str:
    """`PILAEImageClassifier` without an argument, where it was measured."""
    results = read(results_of("images", "angles"))
    shown, made = [], []
    for kind, (where, option) in PLACES.items():
        if kind not in results:
            continue
        machine, cases = results[f"{kind}_machine"], results[kind]
        known = {TITLES[name]: case | {"published": PUBLISHED[name]} for name, case in cases.items()}
        shown += [row | {"where": where} for row in rows(known)]
        made.append(_made(f"studies.images.angles{option}", machine, cases))
    head = (
        "`PILAEImageClassifier()` on | where | test accuracy | leave-one-out | seconds to fit, to predict | "
        "compared with | published without back-propagation"
    )
    line = (
        "{name} | {where} | {test_accuracy:.4f} | {leave_one_out:.4f} | {seconds:.0f}, {seconds_to_predict:.0f} | "
        "{anchors:,} images | {published}"
    )
    return f"{table(head, shown, line)}\n\nMade by {'; '.join(made)}."


PAGES = {page: named(patches, angles) for page in ("studies/README.md", "docs/images.md")}
