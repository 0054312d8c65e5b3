"""Streams that change, and classes, clients and deletions: pilae beside what else learns on."""
