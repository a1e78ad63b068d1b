"""What runs the model on this machine sends no telemetry."""

import os
import subprocess
import sys
from pathlib import Path

EMBED = """
import asyncio
from knowledge.embedding import local_embedder
assert asyncio.run(local_embedder().embed_documents(["a question"]))
"""


def test_embedding_leaves_no_trace_of_telemetry_in_the_home_folder(tmp_path: Path) -> None:
    environment = {
        name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"
    }
    root = str(Path(__file__).parent.parent.parent)

    subprocess.run(
        [sys.executable, "-c", EMBED],
        env={**environment, "HOME": str(tmp_path), "PYTHONPATH": root},
        check=True,
        timeout=50,
    )

    assert list(tmp_path.rglob("*")) == []
