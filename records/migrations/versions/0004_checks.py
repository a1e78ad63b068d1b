"""Add the questions that the owner marked as tests, and the last check of each source."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "marked_questions",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("assistant", sa.String(128), nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("expected", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    )
    op.create_table(
        "checks",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("assistant", sa.String(128), primary_key=True),
        sa.Column("source", sa.Text, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("result", sa.Text, nullable=False),
    )
