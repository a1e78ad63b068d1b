"""Runs the broker's own scripts in every order, on a played Redis whose clock is ours."""
