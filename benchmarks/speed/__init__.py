"""Measures the speed of the product, compared with others and in long runs; `make bench` prints the
tables.
"""
