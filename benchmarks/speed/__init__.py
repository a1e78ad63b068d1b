"""Measures the speed of the product, compared with other systems and in long runs; `make bench`
prints the tables.
"""
