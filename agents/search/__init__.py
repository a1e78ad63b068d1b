"""The way of answering `search`: a search, an answer, and a judgement, each of which can be
repeated within limits.
"""
