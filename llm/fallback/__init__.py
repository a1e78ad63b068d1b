"""Asks the next model of a chain when one fails, and leaves a failing one alone for a while."""
