"""The types of workers, and what a worker does with its brief."""
