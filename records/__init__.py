"""Records of ended questions for the owner, in a database that is independent of message
delivery.
"""
