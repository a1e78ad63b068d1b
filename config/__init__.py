"""Settings, prompts and fixed texts, which can be changed without changing code."""
