"""The agents: one file and one class for each."""
