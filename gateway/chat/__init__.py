"""The common part of the chat channels: accept messages, and show each outcome exactly once.

A message passes these steps; another process may repeat each of them after a crash.

1. Intake stores where the answer belongs (`Post`) in the chat state, then submits the message. Only
then is it acknowledged to the platform: the platform repeats a message that was lost before, and
the broker recognises a repeated message as a duplicate.

2. At the same time the channel shows a typing indicator and a placeholder, whose id is stored.

3. Delivery takes the reply from the result list, creates missing placeholders for further parts of
the answer, *edits* all of them, and acknowledges the reply. A repeated edit shows the same text.

Only a placeholder whose id is lost with its process may remain; it never contains an outcome.
"""
