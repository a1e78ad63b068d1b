"""The agents of the tool loop, and the agent that chooses between the ways of answering."""
