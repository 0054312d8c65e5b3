"""`python -m studies render`: every table and picture of every study into its page, from results."""

import sys

from studies import render
from studies.continual import pages as continual
from studies.continual import pictures as continual_pictures
from studies.images import pages as images
from studies.images import pictures as images_pictures
from studies.paper import pages as paper
from studies.promises import pages as promises
from studies.speed import pages as speed
from studies.speed import pictures as speed_pictures
from studies.tables import pages as tables
from studies.tables import pictures as tables_pictures
from studies.why import why

STUDIES = (paper, speed, tables, images, continual, promises)

PAGES: dict[str, dict] = {"README.md": {"why": why}}
for study in STUDIES:
    for page, found in study.PAGES.items():
        PAGES.setdefault(page, {}).update(found)

PICTURES = {
    name: picture
    for study in (speed_pictures, tables_pictures, images_pictures, continual_pictures)
    for name, picture in study.PICTURES.items()
}

if __name__ == "__main__":
    if sys.argv[1:] != ["render"]:
        sys.exit(f"{__doc__} What measures them are modules of the studies: studies/README.md names them.")
    render.write(PAGES, PICTURES)
