"""From retrieved passage to verified citation; shared by all methods."""
