"""The tasks of models, one module for each way of answering."""
