"""A sentence for each row that differs from the paper: (table, row) to why."""

NOTES: dict[tuple[str, str], str] = {}
