"""Sources other than the collection: calculator, web pages, knowledge graph."""
