"""The HTTP channel: conversations as JSON and server-sent events, and OpenAI's chat completions."""
