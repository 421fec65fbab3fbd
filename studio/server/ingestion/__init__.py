"""Uploads and the worker that ingests them."""
