"""Tables of speed: beside its own products, beside other libraries, on a GPU, on many rows, from a file."""

from studies.data import TITLES
from studies.render import commits, gigabytes, made, named, rows, table
from studies.store import read, results_of


def results(name: str) -> dict:
    return read(results_of("speed", name))


def products() -> str:
    found = results("products")
    cases = found["cases"]
    fits = table(
        "fit | seconds | in GEMM | of its own products | rows a second | peak memory | test accuracy",
        [{"of_its_products": None} | row for row in rows(cases) if "gemm" in row],
        "{name} | {seconds:.1f} | {gemm:.1f} | {of_its_products:.2f} | {rows_per_second:,.0f} | {peak_megabytes:GB} | "
        "{test_accuracy:.4f}",
    )
    plain = {"rows_per_second": "rows a second", "of_its_products": "of its products"}
    small = [
        (f"{name}: {plain.get(what, what)}", f"{value:,.0f}" if value > 100 else f"{value:.2f}")
        for name in ("iris", "prediction, paper's network", "prediction, 10^6 rows x 54", "import")
        for what, value in cases[name].items()
        if isinstance(value, float)
    ]
    foot = made("python -m studies.speed.products", found["machine"], cases.values())
    return f"{fits}\n\n{table('small things | ', small)}\n\n{foot}"


def paper_network() -> str:
    found = results("paper_network")
    cases = {name: case for name, case in found["cases"].items() if name != "equality"}
    shown = table(
        "data and head | test accuracy | leave-one-out | calibration error | seconds | in GEMM | peak memory",
        rows(cases),
        "{name} | {test_accuracy:.4f} | {loo_accuracy:.4f} | {calibration_error:.3f} | {seconds:.0f} | {gemm:.0f} | "
        "{peak_megabytes:GB}",
    )
    searched = [case for case in cases.values() if case["seconds_without_search"]]
    ratios = [case["seconds"] / case["seconds_without_search"] for case in searched]
    equal = max(value for value in found["cases"]["equality"].values() if isinstance(value, float))
    return f"""{shown}

With no argument a fit took {min(ratios):.1f} to {max(ratios):.1f} times as long as the structure it ends with when \
that is given.
Blocks of 1,000 rows, one block, and shuffled rows give the same MNIST outputs to {equal:.0e} (float64). One "GEMM" is a
4000 x 4000 float64 matrix product timed in the same process.
{made("python -m studies.speed.paper_network", found["machine"], found["cases"].values())}"""


def no_argument() -> str:
    """The automatic fits of the table above, for the first screen."""
    cases = results("paper_network")["cases"]
    return table(
        "`PILAEClassifier()` on | test accuracy | leave-one-out | calibration error | seconds",
        rows({TITLES[name.split(",")[0]]: case for name, case in cases.items() if "no argument" in name}),
        "{name} | {test_accuracy:.4f} | {loo_accuracy:.4f} | {calibration_error:.3f} | {seconds:.0f}",
    )


def peer_fits() -> dict[str, dict]:
    """Every fit beside other libraries by name; back-propagation after each epoch."""
    fits = {}
    for name, case in results("peers")["methods"].items():
        for k, fit in enumerate(case.get("epochs", [case]), 1):
            fits[f"{name}, {k} epoch{'s' * (k > 1)}" if "epochs" in case else name] = case | fit
    return {name: fit | {"memory": gigabytes(fit["peak_megabytes"], 1)} for name, fit in fits.items()}


def peers() -> str:
    """Time to accuracy on MNIST."""
    found, fits = results("peers"), sorted(peer_fits().items(), key=lambda item: item[1]["gemm"])
    shown = table(
        "method | test accuracy | seconds | in GEMM | peak memory",
        rows({f"**{name}**" if name.startswith("pilae") else name: fit for name, fit in fits}),
        "{name} | {test_accuracy:.4f} | {seconds:.1f} | {gemm:.1f} | {memory}",
    )
    return f"{shown}\n\n{made('make bench-peers', found['machine'], found['methods'].values())}"


def choose_back_propagation() -> str:
    fits, network = peer_fits(), "PyTorch back-propagation 784-705-634-10, Adam"
    names = (
        "pilae: the paper's 784-705-634, head 4,000, ridge given",
        f"{network}, 3 epochs",
        "pilae: depth 2, 5,000 neurons",
        f"{network}, 5 epochs",
        f"{network}, 8 epochs",
        "MLPClassifier (705, 634), early stopping",
    )
    shown = rows({name: fits[name] for name in names})
    return table(" | test accuracy | seconds", shown, "{name} | {test_accuracy:.4f} | {seconds:.1f}")


def choose_nystroem() -> str:
    given, fits = "width, structure, ridges", peer_fits()
    by_hand = {
        "Nystroem 5,000 + RidgeClassifier": "width, gamma, ridge",
        "pilae: depth 2, 5,000 neurons": given,
        "pilae: depth 2, 3,000 neurons": given,
        "pilae: depth 0, 2,000 pairs": given,
        "pilae: no argument": "nothing",
    }
    shown = table(
        " | test accuracy | seconds | in GEMM | peak memory | given by hand",
        rows({name: fits[name] | {"given": words} for name, words in by_hand.items()}),
        "{name} | {test_accuracy:.4f} | {seconds:.1f} | {gemm:.1f} | {memory} | {given}",
    )
    other, same, narrow, _, free = (fits[name] for name in by_hand)

    def against(one: dict) -> str:
        points = 100 * (one["test_accuracy"] - other["test_accuracy"])
        time = 100 * one["gemm"] / other["gemm"]
        return f"{abs(points):.1f} points {'better' if points > 0 else 'worse'}, in {time:.0f}% of the time"

    memory = 100 * same["peak_megabytes"] / other["peak_megabytes"]
    return f"""{shown}

At the same width pilae is {against(same)} and {memory:.0f}% of the memory.
With 3,000 neurons it is {against(narrow)}.
With no argument, search included, it is {against(free)} of *one* fit of the pipeline."""


def gpu() -> str:
    found = results("gpu")
    machine, rates, stream = found["machine"], found["rates"], found["streamed"]
    shown = table(
        "the paper's network on MNIST | rows on the card | rows in NumPy | test accuracy",
        rows({f"head {width:,}": found[f"paper's network, head {width}"] for width in (4000, 10_000)}),
        "{name} | {on the card[milliseconds]:.0f} ms | {from NumPy[milliseconds]:.0f} ms | "
        "{on the card[test_accuracy]:.4f}",
    )
    free = table(
        "no argument, search included, rows in NumPy | seconds | neurons | test accuracy | leave-one-out",
        rows(
            {title: found[f"no argument, {name}"] for name, title in TITLES.items() if f"no argument, {name}" in found}
        ),
        "{name} | {seconds:.1f} | {width:,} | {test_accuracy:.4f} | {loo:.4f}",
    )
    passes = ", ".join(f"{name} at {rate:.0f} GB/s" for name, rate in stream["GB/s by pass"].items())
    single, double = (rates[f"torch.{dtype} product, TFLOP/s"] for dtype in ("float32", "float64"))
    return f"""{shown}

{free}

Streamed from host memory, {stream["rows"]:,} rows of 100 float32 columns: {stream["seconds"]:.1f} s; {passes} \
(pinned copies: {rates["pinned copy, GB/s"]:.0f} GB/s).
Products of 8,000 x 8,000 matrices: {single:.0f} TFLOP/s in float32, {double:.0f} in float64. \
Outputs agree with those of NumPy to {found["agreement"]["largest relative difference"]:.0e} (float64).
Made by `python -m studies.speed.gpu` on one {machine["gpu"]} with {machine["cores"]} processor cores, \
at {commits(machine)}."""


def scale() -> str:
    """Time and memory against rows."""
    found = results("scale")
    cases, dask, workers = found["cases"], found["cases"]["dask"], found["cases"]["workers"]
    how = {"large": "20 GB, read into buffers, 4.3 GB of address space allowed"}
    shown = table(
        "rows x 100 float32 on disk | seconds | microseconds a row | passes | anonymous memory above the start",
        [row | {"how": how.get(row["name"], "memmap")} for row in rows(cases) if "rows" in row],
        "{rows:,} ({how}) | {seconds:.1f} | {microseconds_a_row:.2f} | {passes} | "
        "{anonymous_megabytes_above_start:.0f} MB",
    )
    return f"""{shown}

Dask's overhead on 64 blocks of 20,000 rows: {100 * dask["overhead"]:.0f}% ({dask["dask_seconds"]:.1f} s \
against {dask["loop_seconds"]:.1f} s in a loop). Two workers of one thread: {workers["speedup"]:.2f} times as fast as \
one.
{made("make bench-scale", found["machine"], cases.values())}"""


def command_line() -> str:
    """A large table through `pilae fit`, and the size of a report."""
    found = results("command_line")
    fit, report = found["cases"]["fit"], found["cases"]["mnist report"]
    return (
        f"`pilae fit` on a made-up CSV of {fit['rows']:,} rows and {fit['columns']} whole-numbered columns "
        f"({fit['file_megabytes']:.0f} MB): {fit['seconds']:.0f} s, {gigabytes(fit['peak_megabytes'])}. The report of "
        f"an MNIST model on its test rows: {report['report_megabytes']:.2f} MB, {report['seconds']:.0f} s.\n"
        + made("python -m studies.speed.command_line", found["machine"], (fit, report))
    )


def sharing() -> str:
    """Fits that do not have the machine to themselves."""
    found = results("sharing")
    keys = ("beside busy processes", "with a quota of one processor")
    keys += tuple(f"eight by joblib, {backend}" for backend in ("loky", "threading"))

    def figures(cases: dict, name: str, digits: int = 2) -> list[str]:
        case = cases.get(name, {})
        return [f"{case[key]:.{digits}f}" if key in case else "-" for key in keys]

    shown = []
    for name, case in found["cases"].items():
        alone = f"{1000 * case['alone, seconds']:.0f} ms" if "alone, seconds" in case else "-"
        both = zip(figures(found["cases"], name), figures(found.get("before", {}), name), strict=True)
        shown.append([name, alone, *(now if before == "-" else f"{now} ({before})" for now, before in both)])
    head = (
        "fit | alone | beside as many busy processes as cores | with a quota of one processor | eight by joblib: loky"
    )
    before = " In brackets: before threads were chosen by pilae." if "before" in found else ""
    return f"""{table(f"{head} | threading", shown)}

Multiples of the time alone; of eight fits side by side, of the time of eight one after another.{before} \
"One row" are a hundred predictions of one row. The quota is {found["quota"]}.
{made("python -m studies.speed.sharing", found["machine"])}"""


def profiles() -> str:
    """Where the seconds of fits go, by what is done and by stage."""
    found = results("profiles")
    cases = found["cases"]

    def shares(what: str) -> str:
        kinds = list(next(iter(cases.values()))[what])
        shown = [
            [kind, *(f"{100 * case[what][kind] / sum(case[what].values()):.0f}%" for case in cases.values())]
            for kind in kinds
        ]
        return table(f" | {' | '.join(cases)}", [*shown, *(totals if what == "kinds" else [])])

    totals = [
        ["seconds", *(f"{case['seconds']:.3g}" for case in cases.values())],
        ["in GEMM of one thread", *(f"{case['gemm']:.3g}" for case in cases.values())],
    ]
    return f"""{shares("kinds")}

{shares("stages")}

{made("python -m studies.speed.profiles", found["machine"], cases.values())}"""


def groups() -> str:
    """Leave-group-out beside leave-one-out."""
    found = results("groups")
    shown = [row | {"ratio": row["groups_seconds"] / row["rows_seconds"]} for row in rows(found["cases"])]
    lines = table(
        "what | rows left out | groups left out | ratio",
        shown,
        "{name} | {rows_seconds:.2f} s | {groups_seconds:.2f} s | {ratio:.2f}",
    )
    foot = made("python -m studies.speed.groups", found["machine"], found["cases"].values())
    return f"{lines}\n\nProcessor seconds of one core. {foot}"


PAGES = {
    "studies/README.md": named(products, sharing, paper_network, groups, peers, gpu, scale, command_line),
    "docs/choose.md": named(choose_back_propagation, choose_nystroem),
    "docs/gpu.md": named(gpu),
    "docs/images.md": named(no_argument),
    "docs/speed.md": named(profiles),
}
