"""`sleuth calibrate`: where the perplexity of an answer tells whether its knowledge suffices."""
