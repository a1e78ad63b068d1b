"""Measures the quality of searches and decisions on data sets with known answers.

`python -m benchmarks.quality SUITE --data FOLDER` prints the figures of a suite.
"""
