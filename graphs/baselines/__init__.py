"""Baselines to compare the methods with, one module each."""
