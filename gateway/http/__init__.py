"""The HTTP door: conversations in JSON and as server-sent events, and OpenAI's chat completions."""
