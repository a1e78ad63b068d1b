"""Writes the table of docs/model_servers.md: `python -m tests.llm.server_matrix`."""

import asyncio

from tests.llm.test_server_shapes import MATRIX, SEEN, make_row, open_registry
from tests.support.model_server import running_server


async def main() -> None:
    text, _, _ = MATRIX.read_text("utf-8").partition("|---")
    rows = []
    for name in SEEN:
        # Models of their own: a model remembers what its server rejected.
        async with running_server() as server:
            registry = open_registry(server)
            rows.append((await make_row(name, server, registry))[0])
            await registry.close()
    MATRIX.write_text("\n".join([f"{text}{'|---' * 7}|", *sorted(rows), ""]), "utf-8")


if __name__ == "__main__":
    asyncio.run(main())
