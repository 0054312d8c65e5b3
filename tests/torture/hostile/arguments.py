"""Arguments for the command line that nobody should give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def argument_case(seed: int, folder: Path) -> tuple[list[str], bytes]:
    """Arguments that nobody should give, and standard input."""
    rng = np.random.default_rng([99, seed])

    def one(*choices: Any) -> str:
        return str(choices[int(rng.integers(len(choices)))])

    nowhere = [
        folder / "nowhere.csv",
        folder,
        "",
        "x" * 300 + ".csv",
        "a\udcff.csv",
        "/dev/null",
        "....",
        "~.csv",
        "-.csv",
    ]
    table = one(folder / "house.csv", folder / "odd.csv", folder / "odd.csv", "-", *nowhere, folder / "kinds.pilae")
    model = one(folder / "kinds.pilae", folder / "prices.pilae", *nowhere, folder / "house.csv", "-")
    out = folder / f"argument-{seed}"
    where = one(out, out, f"{out}.csv", f"{out}.parquet", "-", folder, folder / "no" / "m", "/proc/m", "", "/dev/full")
    command = one("fit", "fit", "predict", "predict", "evaluate", "evaluate", "info", "export", "report", "nonsense")
    words: list[str] = [command]
    odd = [
        "",
        " ",
        "\t",
        "a",
        "<b>",
        '"',
        "'",
        ",",
        ";",
        "\\s+",
        "\\",
        "[",
        ".",
        "é",
        "日",
        "ab",
        "%",
        "\n",
        "-",
        "'; --",
    ]
    if command == "fit":
        target = one("nonsense", "", "<b>", "é", "a", "Unnamed: 3", "y", "y" * 500, "%s")
        columns = one("size", "size,size", ",", "y", "a,<b>", "nonsense", " size , town ", "size,,town", "é")
        words += [table, "--target", target, "-o", where, *(["--columns", columns] if rng.random() < 0.7 else [])]
        words += ["--quiet"] * (rng.random() < 0.97)
        more = [
            ["--holdout", one("nan", "1", "-1", "0.999999", "1e-9", "x", "inf")],
            ["--seed", one("-1", "0", str(2**40), "1.5", "x", str(2**32 - 1))],
            ["--task", one("regression", "classification", "magic")],
            ["--report", one(f"{out}.pdf", f"{out}.md/x", folder, "", "-")],
            ["--statistics"],
        ]
    elif command in ("predict", "evaluate"):
        words += [model, table, *(["-o", where] if command == "predict" else [])]
        more = [["--proba"], ["--interval", one("0", "1", "nan", "0.9", "-0.5", "x")]] if command == "predict" else [[]]
    elif command == "export":
        words += [model, "--onnx", where]
        more = [["--float32"]]
    elif command == "report":
        words += [model, *([one(*nowhere, folder / "odd.csv")]), "-o", where]
        more = [["--json"]]
    else:
        words += [model]
        more = [["--nonsense"], ["--help"]]
    if command in ("fit", "predict", "evaluate"):
        more += [
            ["--separator", one(*odd)],
            ["--encoding", one(*odd, "utf-16", "rot13", "idna", "utf-7", "undefined", "mbcs")],
        ]
        more += [["--decimal", one(*odd)], ["--json"]]
    for k in rng.permutation(len(more))[: int(rng.integers(0, 3))]:
        words += more[int(k)]
    stdin = [
        b"",
        b"size,town,built,garden\n1,Ulm,2000-01-01,True\n",
        b"\xff\xfe\x00",
        b"a,y\n1,2\n" * 3,
        b'"',
        b"\0" * 50,
    ]
    return words, stdin[int(rng.integers(len(stdin)))]
