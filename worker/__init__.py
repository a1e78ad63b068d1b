"""Worker processes: take entries from the streams, run agents on them, and settle them."""
