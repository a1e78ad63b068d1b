"""Reviews of documents against rules: nine specialists, each adds to what the others found.

`requirements` are what a rule demands, `verdicts` what a document says to it, `audit` checks the
citations, `report` writes it all down. These folders are functions without I/O; the modules of the
agents themselves read documents and ask models.
"""
