"""Connections to one Redis server or a cluster: health checks, scripts, auto-pipelining."""
