"""The CRAG hybrid system: pages, tables, calculator, knowledge graph and memory."""
