"""One file per language-model role: typed input, prompt, one model call, typed output."""
