"""The verbs for operators: keys, traces, status, erasure, dead letters."""
