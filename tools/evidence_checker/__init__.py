"""Evidence checker: a small encoder that reads passages with a question or a statement.

For a question it returns the probability that the passages answer it and the best answer spans; for a statement, the
probabilities that the passages support it, contradict it, or do not mention it.
"""

from sleuth.tools.evidence_checker.checker import EvidenceChecker
from sleuth.tools.evidence_checker.inputs import Evidence

__all__ = ["Evidence", "EvidenceChecker"]
