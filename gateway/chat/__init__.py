"""What the push doors share: taking messages in, and showing each one's outcome exactly once.

A message goes through these steps; each may be repeated by another process after a death.

1. Intake writes where the answer belongs (`Post`) into the push memory, then submits. Only then is
   the platform told that the message arrived: what died before is sent again by the platform, what
   is sent again is a duplicate for the broker.
2. Beside that, the channel shows that somebody works: a sign, and a placeholder whose id is stored.
3. Delivery takes the reply from the result list, makes sure that there are as many placeholders as
   the answer has parts, *edits* them, and acknowledges. An edit that is repeated shows the same.

A placeholder whose id is lost with its process is the one thing that may be left behind; it never
carries an outcome.
"""
