"""The specialists: each reads a part of the findings and adds its own."""
