"""The way of answering `search`: one search, one answer, and one judgement, each repeated within
limits.
"""
