"""Swarms on real processes that are killed, with workers that fail, hang and are paid."""
