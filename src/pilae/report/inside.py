"""What a network is and why, for those who want to know more: sections that are folded."""

from collections.abc import Callable
from typing import Any

from .parts import Picture, Section, Table, alike, table, word
from .words import GLOSSARY, candidate_names

SHOWN_CANDIDATES = 40

Figures = Callable[..., list[Picture]]
"""Names of figures to those of them that there are."""


def network_section(summary: dict[str, Any], figures: Figures) -> Section:
    network = summary["network"]
    rows: list[list[Any]] = [
        [f"layer {k}", layer["width"], layer["activation"], layer["input_rank"], layer["reconstruction_error"]]
        for k, layer in enumerate(network["layers"], 1)
    ]
    head = network.get("head")
    text = [f"Input scaling: {network['input_scaling']}."]
    if head is not None:
        rows.append([f"head: {head['kind']}", head["width"], head.get("activation"), None, None])
        if head.get("ridge") is not None:
            links = ", with direct links from the input" if head["direct_links"] else ""
            text.append(f"Output ridge {word(head['ridge'])} per unit of weight{links}.")
    for other in network.get("averaged_with", []):
        beside, layers = other["head"], len(other["layers"])
        neurons = "no hidden neurons" if beside["activation"] is None else f"{beside['width']} neurons"
        text.append(
            "What the model says is the mean of the outputs of two networks, each with an output layer of its own, "
            "because leave-one-out has a lower loss so. The second, beside the one shown here: input scaling "
            f"{other['input_scaling']}, {layers} {'layer' if layers == 1 else 'layers'}, {neurons}"
            + ("." if beside["activation"] is None else f" ({beside['activation']}).")
        )
    caption = "Layers, from input to output."
    if network["layers"]:
        caption += (
            " The error of a layer's own decoder is that with which it gave back the layer's own input (for later "
            "layers: the features below), on training rows while the layer was fitted and before its weights were "
            "tied; relative to the squared size of that input."
        )
    columns = ["", "neurons", "activation", "rank of its input", "error of its own decoder"]
    spectrum = summary.get("spectrum")
    if spectrum is not None:
        text.append(
            f"{word(spectrum['rows'])} test rows, their columns brought to one scale, have rank "
            f"{spectrum['rank']} of {len(spectrum['values'])}."
        )
    tables = [table(caption, columns, rows)]
    return Section("The network", text, figures("spectrum"), tables, folded=True)


def search_section(summary: dict[str, Any], figures: Figures) -> Section | None:
    search = [row for row in summary["search"] if row["loss"] is not None]
    untried = summary["search"][len(search) :]
    section = Section("What was searched", figures=figures("width_path", "depth"), folded=True)
    if search:
        last = max(row["round"] for row in search)
        section.text.append(
            f"{len(search)} candidates were compared by the leave-one-out loss of their output layer on training "
            "rows that are not neurons themselves and had no part in a metric; the lowest was taken (highlighted; of "
            "two, outputs are averaged), and of equal ones the simpler. Rounds say how often the labels have shaped a "
            "candidate's metric."
        )
        if last > 1:
            section.text.append(
                "In the first round every candidate was tried, with few neurons and on a small sample of the rows; "
                "in later ones the best few again, with more neurons and, where there are enough, on more rows: "
                "the last decided. Losses of different rounds come from different rows and are not to be compared."
            )
        section.tables = [_round(search, number, last) for number in range(last, 0, -1)]
        if untried:
            section.text.append(
                f"The time that was given was used up: at least {len(untried)} more candidates would have come. "
                "The best so far was taken."
            )
            left = [[name, row["round"]] for name, row in zip(candidate_names(untried), untried, strict=True)]
            section.tables.append(table("Not tried.", ["candidate", "round"], left, most=SHOWN_CANDIDATES))
        section.text += _final_width(summary)
        section.glossary = GLOSSARY
    return section if search or section.figures else None


def _final_width(summary: dict[str, Any]) -> list[str]:
    """Why the network has another width than the candidate it comes from."""
    head, path = summary["network"].get("head") or {}, summary.get("width_path")
    if path is None:
        return []
    links = head["columns"] - head["width"]
    made = f"{head['width']:,} neurons" + (f" and {links:,} columns of the input itself" if links else "")
    return [
        "Widths in the tables are those of the search. The network itself was then made from all training rows and "
        f"cut to the best of all widths: {made}."
    ]


def _round(search: list[dict[str, Any]], number: int, last: int) -> Table:
    rows = sorted((row for row in search if row["round"] == number), key=lambda row: float(row["loss"]))
    name = {last: "The last round", 1: "The first round"}.get(number, "The round between")
    name = "The only round" if last == 1 else name
    values = [[row[key] for key in ("width", "loss", "standard_error")] for row in rows]
    cells = [[name, *each] for name, each in zip(candidate_names(rows), values, strict=True)]
    return table(
        f"{name}: {len(rows)} candidates on {word(rows[0]['rows'])} training rows, the best first.",
        ["candidate", "width", "loss", "± standard error"],
        cells,
        chosen=[bool(row["chosen"] or row["averaged"]) for row in rows],
        most=SHOWN_CANDIDATES,
        ways=alike(cells, 2, 3),
    )


def layers_section(summary: dict[str, Any], figures: Figures) -> Section | None:
    kept = summary.get("reconstruction")
    if kept is None:
        return None
    rows = [[f"layer {each['layer']}", each["error"]] for each in kept["layers"]]
    text = [
        "How much of the scaled input is still in the features of each layer: a linear map from these features "
        "straight back to the scaled input is fitted on one half of the test rows and judged on the other. It is "
        "not the decoder of the table above, which gives back the input of its own layer only."
    ]
    caption = (
        "Squared error of that linear map, relative to that of the mean: 0 where a layer keeps everything, 1 where "
        "it keeps nothing."
    )
    tables = [table(caption, ["", "error"], rows)]
    return Section("What the layers keep", text, figures("reconstruction"), tables, folded=True)
