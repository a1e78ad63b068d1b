"""Add the id of the user in the channel."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column, which is empty for earlier messages."""
    name = sa.Column("person_name", sa.String(128), nullable=False, server_default="")
    op.add_column("messages", name)
