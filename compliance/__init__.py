"""Requirements of rules, verdicts about documents, checks of citations, risks and reports.

All functions are pure: they get texts and vectors, and return values. What reads the index, asks a
model or writes a file is above this package.
"""
