"""Metrics of ended questions for Prometheus, traces for OpenTelemetry, errors for Sentry."""
