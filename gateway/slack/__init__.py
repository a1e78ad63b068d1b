"""The Slack door: events come over HTTP or Socket Mode, answers are edited into their threads."""
