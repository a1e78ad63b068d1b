"""What several tests stand on: harnesses, fakes and servers."""
