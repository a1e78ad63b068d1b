"""Benchmarks of speed, size, and the quality of answers; alternatives are compared in the same
run.
"""
