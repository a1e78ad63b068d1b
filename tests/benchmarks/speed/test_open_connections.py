"""A small share of the crowd of connections, against a real server process."""

from pathlib import Path

import pytest

from benchmarks.speed.open_connections import attack, serve

LEAST_MEMORY_MB = 20


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_visitors_are_answered_beside_connections_that_mean_no_good(tmp_path: Path) -> None:
    settings = {"HTTP_BUFFER_MB": "2", "HTTP_CONNECTIONS": "150"}
    with serve(tmp_path, documents=False, question="/help", **settings) as server:
        result = await attack(
            server, half_open=100, buffered=30, unread=10, visitors=6, seconds=120
        )
        log = (tmp_path / "serve.log").read_text()

    assert result.errors == []
    assert result.answered == 6
    assert result.most_mb > LEAST_MEMORY_MB
    assert "Traceback" not in log
