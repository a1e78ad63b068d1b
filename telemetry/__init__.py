"""Measurement of ended questions: counters for Prometheus, traces for OpenTelemetry."""
