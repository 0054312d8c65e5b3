"""Every part at full count, each in a process of its own, into benchmarks/results/torture.json.

python -m torture                # all of them
python -m torture files faults   # these; what was measured of the others stays
python -m torture --quick        # at the counts of the tests; nothing is written
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time

from benchmarks.machine import RESULTS, describe, peak_megabytes
from torture import PARTS
from torture.harness import say


def one(name: str, counts: str) -> None:
    """The process of one part: the last line it prints is what it found."""
    module = importlib.import_module(f"torture.{name}")
    start = time.perf_counter()
    found = module.run(**getattr(module, counts))
    found |= {"seconds": round(time.perf_counter() - start, 1), "peak_megabytes": round(peak_megabytes())}
    print(json.dumps(found))


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--one"]:
        one(*arguments[1:])
        return 0
    quick = "--quick" in arguments
    names = [name for name in arguments if name != "--quick"]
    unknown = set(names) - set(PARTS)
    if unknown:
        say(f"There is no part {sorted(unknown)[0]!r}: choose among {', '.join(PARTS)}.")
        return 2
    path = RESULTS / "torture.json"
    results = json.loads(path.read_text()) if names and path.exists() else {"parts": {}}
    results |= {"command": "make torture", "machine": describe()}
    broken = False
    for name in names or PARTS:
        say(f"{name}: {PARTS[name]}")
        call = [sys.executable, "-m", "torture", "--one", name, "QUICK" if quick else "FULL"]
        out = subprocess.run(call, stdout=subprocess.PIPE, text=True)
        lines = out.stdout.strip().splitlines()
        found = json.loads(lines[-1]) if out.returncode == 0 else {"broken": True, "exit_code": out.returncode}
        broken |= out.returncode != 0
        say(f"  {found}")
        results["parts"][name] = found | {"commit": results["machine"]["commit"]}
        results["parts"] = {key: results["parts"][key] for key in PARTS if key in results["parts"]}
        if not quick:
            path.write_text(json.dumps(results, indent=2) + "\n")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
