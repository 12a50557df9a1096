"""Labels for new images from a finished run, and how unlike the pool they are. The work is in ``prediction.run``."""

from semiprune_core.prediction.write import PredictedImages, write_predictions

__all__ = ["PredictedImages", "write_predictions"]
