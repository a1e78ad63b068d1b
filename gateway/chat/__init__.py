"""The common part of the chat channels, which accepts messages and shows each outcome exactly once.

A message passes through these steps. After a crash, another process may repeat any of them.

1. Intake stores where the answer belongs (`Post`) in the chat state, then submits the message. Only
then is the message acknowledged to the platform. If it is lost before that, the platform sends it
again, and the broker recognizes a repeated message as a duplicate.

2. At the same time the channel shows a typing indicator and a placeholder, whose id is stored.

3. Delivery takes the reply from the result list, creates missing placeholders for further parts of
the answer, *edits* all of them, and acknowledges the reply. Repeating an edit shows the same text.

A placeholder can remain only if its ID is lost with its process; such a placeholder never contains
an outcome.
"""
