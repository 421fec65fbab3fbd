"""RetroRAG: collect and revise evidence until the answer is consistent."""
