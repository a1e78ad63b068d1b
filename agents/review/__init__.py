"""Reviews of documents against rules by nine specialists. `requirements` has the requirements of a
rule, `verdicts` the verdicts about a document, `audit` checks citations, `report` writes the
report; these are functions without I/O. The modules of the agents read documents and call models.
"""
