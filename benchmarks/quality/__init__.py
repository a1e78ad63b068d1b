"""How good searches and decisions are, on data sets with known answers.

`python -m benchmarks.quality SUITE --data FOLDER` prints the figures of a suite.
"""
