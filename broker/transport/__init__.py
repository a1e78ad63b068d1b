"""Connections to Redis: one server or a cluster, health, scripts, shared round trips."""
