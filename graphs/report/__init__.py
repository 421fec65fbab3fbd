"""Reports: several pages about a question, each sentence with its sources."""
