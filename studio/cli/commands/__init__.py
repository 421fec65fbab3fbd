"""The commands of `sleuth`, one module per group."""
