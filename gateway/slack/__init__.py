"""The Slack channel: receives events over HTTP or Socket Mode, and edits answers into threads."""
