"""The types of workers of this project, one a module."""
