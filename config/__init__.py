"""Settings, prompts and fixed texts: the parts that change without code. For `deploy` only."""
