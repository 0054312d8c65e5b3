"""python -m tests.behaviour [--record] [name ...]: compare every case with its recorded answer, or record it."""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from pathlib import Path

from . import compare
from .cases import CASES
from .files import FILES, make_missing


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.behaviour", description=__doc__)
    parser.add_argument("names", nargs="*", help="cases (default: all)")
    parser.add_argument("--record", action="store_true", help="write the answers of today's code; make missing files")
    options = parser.parse_args()
    every = CASES | {f"file: {name}": case for name, case in FILES.items()}
    if options.record:
        with tempfile.TemporaryDirectory() as folder:
            made = {f"file: {name}" for name in make_missing(Path(folder))}
        old = compare.read() if compare.ANSWERS.exists() else {}
        names = options.names or list(every)
        # what a file of an earlier day said when it was made stays what it must say
        fresh = {name: compare.run(every[name]) for name in names if name in CASES or name in made}
        compare.write({name: answer for name, answer in (old | fresh).items() if name in every})
        print(f"{len(fresh)} answers recorded, {len(made)} files made")
        return 0
    recorded, failed = compare.read(), 0
    for name in options.names or every:
        start = time.perf_counter()
        over, value = compare.worst(every[name], recorded.get(name, {}))
        failed += over > 1
        mark = "differs" if over > 1 else "ok"
        print(f"{mark:8}{name:40}{over:10.2g} of {compare.bound(every[name]):.0e}  {value:32}", end="")
        print(f"{time.perf_counter() - start:6.2f} s" if math.isfinite(over) else "  may not differ")
    print(f"{failed} of {len(options.names or every)} differ" if failed else "the same to rounding")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
