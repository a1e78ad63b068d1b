"""Assign separate ways of answering to greetings and commands."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Set the way of earlier greetings and commands, based on their traces."""
    messages = sa.table("messages", sa.column("way"), sa.column("steps"))
    for way, row in (("courtesy", ".courtesy"), ("command", "start.command")):
        is_such = messages.c.steps.contains(f'{row}"', autoescape=True)
        op.execute(messages.update().where(is_such).values(way=way))
