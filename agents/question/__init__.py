"""The agents that every question passes: its language, meaning and scope; commands; replies."""
