"""Survey: questions asked of every document of a collection, and figures counted from the answers."""
