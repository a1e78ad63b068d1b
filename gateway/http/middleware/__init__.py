"""What every request over HTTP passes before the routes: its key, then its body."""
