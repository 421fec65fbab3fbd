"""sleuth as tools of any client of the Model Context Protocol."""
