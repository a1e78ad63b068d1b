"""Reviews of documents against rules, performed by nine specialists. `requirements` contains the
requirements of a rule, `verdicts` contains the verdicts on a document, `audit` checks citations,
and `report` writes the report; these modules are functions without I/O. The agent modules read
documents and call models.
"""
