"""Synthetic worlds: small invented encyclopaedias with questions, for training and as a stress test.

A world is a set of typed entities and facts, sampled from tables (`kinds.toml`, `relations.toml`, `names.toml`,
`frames.toml`). Its pages state each fact exactly once. Answers are computed from the facts, never from the text.
"""
