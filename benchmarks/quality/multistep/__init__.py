"""Measures ways of answering that take several steps: the suite `multistep`."""
