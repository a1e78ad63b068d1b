"""The tasks that models perform, by way of answering."""
