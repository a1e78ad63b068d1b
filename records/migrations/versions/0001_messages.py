"""The table of ended messages."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the table."""
    text = ("channel", "person", "way", "language", "outcome", "reason", "answered_by", "judge",
            "rating")  # fmt: skip
    lengths = dict(zip(text, (64, 128, 64, 16, 32, 128, 32, 128, 8), strict=True))
    op.create_table(
        "messages",
        *(
            sa.Column(name, sa.String(128), primary_key=True)
            for name in ("tenant", "assistant", "conversation_id", "message_id")
        ),
        *(
            sa.Column(name, sa.Float, nullable=False)
            for name in ("accepted_at", "ended_at", "seconds")
        ),
        *(sa.Column(name, sa.String(length), nullable=False) for name, length in lengths.items()),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in (
                "question",
                "canonical",
                "answer",
                "sources",
                "models",
                "stage_seconds",
                "steps",
                "rating_reason",
            )
        ),
        *(
            sa.Column(name, sa.Integer, nullable=False)
            for name in ("model_calls", "input_tokens", "output_tokens")
        ),
        sa.Column("quality", sa.Float),
        sa.Column("cost_usd", sa.String(40)),
    )
    op.create_index("ix_messages_ended_at", "messages", ["ended_at"])
