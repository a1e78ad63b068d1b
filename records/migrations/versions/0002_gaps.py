"""Add gaps with their questions, and verified answers.

Also add the groups of the user and the nearest pages to messages.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_ID = ("tenant", "assistant", "conversation_id", "message_id")


def upgrade() -> None:
    """Create the tables, and add the columns, which are empty for earlier messages."""
    for name in ("nearest", "groups"):
        op.add_column("messages", sa.Column(name, sa.Text, nullable=False, server_default="[]"))
    op.create_table(
        "gaps",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("assistant", sa.String(128), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("changed_at", sa.Float, nullable=False),
    )
    op.create_table(
        "gap_questions",
        *(sa.Column(name, sa.String(128), primary_key=True) for name in _ID),
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.Column("gap_id", sa.String(32), nullable=False, index=True),
    )
    op.create_table(
        "verified_answers",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("assistant", sa.String(128), nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("sources", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("changed_at", sa.Float, nullable=False),
    )
