"""Metrics of ended questions for Prometheus, traces for OpenTelemetry, and errors for Sentry."""
