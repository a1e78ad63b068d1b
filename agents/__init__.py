"""The agents, with one file and one class for each."""
