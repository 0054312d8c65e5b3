"""A sentence for each row that differs from the paper: (table, row) to why."""

SMALLER = "A part of the paper's set: not comparable."
UNKNOWN_ROWS = "The paper's rows are a part of these."

NOTES: dict[tuple[str, str], str] = {
    ("table1", "Bupa"): UNKNOWN_ROWS,
    ("table1", "Segment"): UNKNOWN_ROWS,
    ("table1", "Mfeat"): UNKNOWN_ROWS + " One singular value lies at the Gram's cut-off.",
    ("table1", "sylva_agnostic_train"): "The training part; the paper has 10,000 rows of the set.",
    ("table1", "isolet_subset"): SMALLER,
    ("table1", "har_subset735"): SMALLER + " 71 of its 540 singular values are too small for a Gram.",
}
