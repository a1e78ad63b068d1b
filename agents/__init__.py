"""The agents, with one module and one class for each."""
