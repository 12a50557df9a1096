"""SemiPrune Studio's core: from a pool of unlabeled images to a coreset, without a browser."""

__version__ = "0.1.0"
