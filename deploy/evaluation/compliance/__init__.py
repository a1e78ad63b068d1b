"""The suite `compliance`: verdicts, evidence, citations and sections, against people's labels."""
