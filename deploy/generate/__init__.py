"""Generated pages and manifests."""
