"""Counts tokens without a model's own tokenizer.

A token is counted as four bytes of UTF-8: about right for English prose and for code, and a letter
of another script, which costs a model more, counts for more.
"""

BYTES_PER_TOKEN = 4


def count_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)
