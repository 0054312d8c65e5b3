"""`python -m studies render`: every table of every study from its results into the pages it stands in."""

import sys

from studies import render
from studies.continual import pages as continual
from studies.images import pages as images
from studies.paper import pages as paper
from studies.promises import pages as promises
from studies.speed import pages as speed
from studies.tables import pages as tables
from studies.why import why

STUDIES = (paper, speed, tables, images, continual, promises)

PAGES: dict[str, dict] = {"README.md": {"why": why}}
for study in STUDIES:
    for page, found in study.PAGES.items():
        PAGES.setdefault(page, {}).update(found)

if __name__ == "__main__":
    if sys.argv[1:] != ["render"]:
        sys.exit(f"{__doc__} What measures them are modules of the studies: studies/README.md names them.")
    render.write(PAGES)
