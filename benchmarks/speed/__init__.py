"""How fast the product is, beside others and over long runs; `make bench` prints the tables."""
