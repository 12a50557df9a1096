"""Images like one that is shown, or like words, by the features of an encoder.

It exports :func:`like_image`, :func:`like_picture` and :func:`like_words`, which say how alike every image is, and
:func:`most_alike`, which puts images in order.
"""

from semiprune_core.find.query import can_find, like_image, like_picture, like_words, words_missing
from semiprune_core.find.rank import most_alike

__all__ = ["can_find", "like_image", "like_picture", "like_words", "most_alike", "words_missing"]
