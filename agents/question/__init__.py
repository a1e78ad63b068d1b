"""The agents of the stages that every question passes: language, meaning, scope, commands and
replies.
"""
