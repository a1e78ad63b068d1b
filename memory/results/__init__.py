"""Results of running questions that are too large for envelopes."""
