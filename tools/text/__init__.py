"""Text normalization and language detection; sentences, words, stems and names in a text."""
