"""The routes of `sleuth serve`, a topic each."""
