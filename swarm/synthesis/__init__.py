"""What is written from the results of all workers."""
