"""Plants faults in real runs and counts which of them are found."""
