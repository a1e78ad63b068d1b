"""Monitoring of a worker process: health, readiness and metrics."""
