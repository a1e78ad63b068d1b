"""The Slack channel, which receives events over HTTP or Socket Mode, and edits answers into
threads.
"""
