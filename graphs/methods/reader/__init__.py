"""Answers from the passages alone, without a language model."""
