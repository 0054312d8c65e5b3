"""The pictures of pages that draw them by their own code, each of which leaves a `figure`:
python docs/examples/pages.py [folder]
"""

import re
import sys
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib

DOCS = Path(__file__).resolve().parents[1]
PAGES = ("start", "tables", "stream", "sites", "deletion", "later_classes", "groups")


def main(folder: Path) -> None:
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "pilae"  # the same file each time
    folder.mkdir(exist_ok=True)
    for page in PAGES:
        text = (DOCS / f"{page}.md").read_text()
        blocks = re.findall(r"^(% not executed[^\n]*\n)?```python\n(.*?)^```$", text, flags=re.M | re.S)
        space: dict = {}
        for skipped, code in blocks:
            if not skipped and "figure" not in space:  # what comes after it is not needed
                with redirect_stdout(None):
                    exec(compile(code, page, "exec"), space)
        space["figure"].savefig(folder / f"{page}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS)
