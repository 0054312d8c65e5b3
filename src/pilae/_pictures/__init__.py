"""Files of images: a folder for each class, decoded by Pillow and brought to one size.

Files may be damaged or hostile. What cannot be read is named with its reason; an image takes no more memory than
`decoder.MOST_PIXELS` pixels do, whatever its file claims, and few are decoded at the same time.
"""
