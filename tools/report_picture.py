"""docs/report.png: the report that the code of docs/report.md makes, as a browser shows its first screens.

    python -m tools.report_picture

Needs Debian's Chromium (`make test-browser` installs it). Seconds in the picture are those of the machine.
"""

import contextlib
import re
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
SIZE = 1000, 1190
COLOURS = 64
"""As many as the page needs; the file is a third as large."""

OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


def main() -> None:
    text = (ROOT / "docs/report.md").read_text()
    [code] = re.findall(r"^```python\n(.*?)^```$", text, flags=re.M | re.S)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with contextlib.chdir(folder), contextlib.redirect_stdout(None):
            exec(compile(code, "docs/report.md", "exec"), {})
        shot = folder / "report.png"
        where = f"--user-data-dir={folder / 'browser'}", f"--screenshot={shot}", f"--window-size={SIZE[0]},{SIZE[1]}"
        page = (folder / "houses.html").as_uri()
        subprocess.run(["chromium", *OPTIONS, *where, page], check=True, capture_output=True)
        Image.open(shot).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
            ROOT / "docs/report.png", optimize=True
        )


if __name__ == "__main__":
    main()
