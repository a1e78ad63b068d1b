"""Pauses that ask for information or an approval, and go on where they stopped."""
