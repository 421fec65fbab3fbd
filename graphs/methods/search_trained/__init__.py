"""Models that were trained to search: one transcript, with a search at each tag."""
