"""What jobs and reviews ask for, and the interfaces that they use."""
