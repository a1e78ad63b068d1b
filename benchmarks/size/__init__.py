"""What the product weighs: start time and memory."""
