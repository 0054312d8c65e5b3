"""What a fitted model is, why, and how good: as one HTML page, as Markdown, as JSON.

A report is a summary first (`summary`: model to plain dict), then figures (`figures`: dict to SVG), then a page
(`page`: both to text). Nothing is computed while a page is written.
"""

from .image_classifier import ImageClassifierReport, summarise_image_classifier
from .images import ImageReport, summarise_images
from .page import Report, check_ending, make_report

__all__ = [
    "ImageClassifierReport",
    "ImageReport",
    "Report",
    "check_ending",
    "make_report",
    "summarise_image_classifier",
    "summarise_images",
]
