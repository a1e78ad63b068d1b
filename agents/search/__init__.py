"""The way `search`: one search, one answer, one judgement, each repeated within limits."""
