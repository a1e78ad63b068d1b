"""Runs the migrations on the connection that `records.store` opened."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
