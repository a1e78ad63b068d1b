"""The strategy `intelligent`: divides by what the question needs."""

from agents.swarm.strategies.strategy import SwarmStrategy


class IntelligentStrategy(SwarmStrategy):
    """Leaves the division to the planner."""

    name = "intelligent"
    description = "divides by what the question needs: parts, documents, or steps that follow"
    form = "one answer in the order of the question"
