"""The tasks of models, with one module for each way of answering."""
