"""`python -m tests.faults.planted [--ways tools] [--questions N]` prints what was found."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from fakeredis import FakeServer

from broker.embedded_redis import Endpoint
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import Knowledge, make_embedder, make_searcher, open_index
from knowledge.ingestion_report import PlainReport
from tests.faults.planted.planted_runs import (
    EVERY_QUESTION,
    QUESTIONS,
    STAGES,
    SWARM_QUESTIONS,
    PlantedFigures,
    format_figures,
    open_desk,
    run_clean,
    run_planted,
)
from tests.support.app_harness import EXAMPLES, settings_of


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ways", nargs="+", default=list(STAGES), choices=list(STAGES))
    parser.add_argument("--questions", type=int, default=4)
    parser.add_argument("--clean", type=int, default=1, help="clean runs of every question")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="refdesk-planted-") as folder:
        figures = asyncio.run(
            _measure(Path(folder), chosen.ways, QUESTIONS[: chosen.questions], chosen.clean)
        )
    sys.stdout.write("\n".join(format_figures(figures)) + "\n")


async def _measure(
    folder: Path, ways: list[str], questions: tuple[str, ...], clean: int
) -> PlantedFigures:
    settings, figures = settings_of(folder), PlantedFigures()
    await run_ingestion(settings, [EXAMPLES / "sms_platform"], PlainReport(lambda _line: None))
    embedder = make_embedder(settings)
    index = await open_index(settings, embedder)
    knowledge = Knowledge(index, embedder, make_searcher(settings, index, embedder))
    for way in ways:
        endpoint = Endpoint(url="", durable=False, played=FakeServer())
        async with open_desk(folder, endpoint, knowledge, way) as (harness, model):
            own = SWARM_QUESTIONS[: len(questions)] if way == "swarm" else questions
            for _ in range(clean):
                every = [*SWARM_QUESTIONS, *(str(asked["question"]) for asked in EVERY_QUESTION)]
                await run_clean(harness, way, every, figures)
            await run_planted(harness, model, way, own, figures)
    await index.close()
    return figures


if __name__ == "__main__":
    main()
