"""The agents of the stages that every question passes through: language, meaning, scope, commands,
and replies.
"""
