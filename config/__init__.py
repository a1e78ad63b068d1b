"""What changes without code: settings, prompts, fixed texts, models and their limits."""
