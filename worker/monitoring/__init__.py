"""What a worker process shows to those who run it: health, readiness, metrics."""
