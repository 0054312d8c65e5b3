"""Everything, or the parts named: python -m studies.paper [part | part:cell ...] (with QUICK=1 a run of minutes).

A run that was interrupted goes on where it was. Data come from the folder in PILAE_DATA, or from OpenML. Finished parts
take the place of those in studies/paper/results, and Figure 2 is drawn; `python -m studies render` writes the pages.
"""

import sys

import torch

from studies.paper import ablations, basic_pil, figure2, incremental, table1, table2, table3
from studies.paper.setting import RUN

PARTS = {
    "table1": table1,
    "table3": table3,
    "table2": table2,
    "basic_pil": basic_pil,
    "incremental": incremental,
    "ablations": ablations,
}


def main() -> None:
    wanted = [name.partition(":")[::2] for name in sys.argv[1:] or PARTS]
    for part, cell in wanted:
        if part not in PARTS or (cell and cell not in PARTS[part].cells()):
            name = f"{part}:{cell}" if cell else part
            sys.exit(f"There is no {name!r}. Parts are {', '.join(PARTS)}; part:cell is one cell, as in the results.")
    RUN.machine = {"torch": torch.__version__}
    try:
        for part, cell in wanted:
            RUN.measure(part, PARTS[part].cells(), cell or None)
    except KeyboardInterrupt:
        sys.exit("\nStopped: what was measured is kept, and the same command goes on from there.")
    RUN.forget_unfinished()
    figure2.main()


if __name__ == "__main__":
    main()
