"""Chat about the documents: a graph whose turns run a method when a message needs one."""
