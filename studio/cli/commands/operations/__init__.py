"""Commands for people who run sleuth for others."""
