"""Evaluation: questions with known answers, measured on search alone or on whole methods, and a report of it."""

from sleuth.studio.evaluation.evaluate import Evaluation

__all__ = ["Evaluation"]
