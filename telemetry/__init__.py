"""What is measured of ended questions: counters for Prometheus, traces for OpenTelemetry."""
