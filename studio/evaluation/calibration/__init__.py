"""`sleuth calibrate`: where the perplexity of an answer tells whether its knowledge suffices."""

from sleuth.studio.evaluation.calibration.calibrate import Calibration
from sleuth.studio.evaluation.calibration.fit import Measured

__all__ = ["Calibration", "Measured"]
