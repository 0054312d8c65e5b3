"""Measurements. One folder for each study; its modules are commands: `python -m studies.speed.peers`."""
