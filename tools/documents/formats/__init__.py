"""Readers of file formats: the text of a file with its places."""
