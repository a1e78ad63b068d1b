"""An invented law of many articles, and a contract that fulfils some of them, as an index."""

from pathlib import Path

from deploy.assembly.ingestion_run import run_ingestion
from knowledge.ingestion_report import PlainReport
from tests.support.app_harness import settings_of

ARTICLES = 300
_THINGS = ("ledger", "archive", "vault", "register", "seal", "beacon", "manifest", "permit")
_ACTS = ("inspect", "repair", "publish", "count", "insure")
LAW, CONTRACT = "Harbour Equipment Act", "Contract of Orme Cranes"


def write_article(number: int) -> str:
    """Return the rule of an article, which no other article has."""
    thing, act = _THINGS[number % len(_THINGS)], _ACTS[number % len(_ACTS)]
    return f"The operator shall {act} the {thing} of berth {number} every month."


async def ingest_long_law(folder: Path) -> Path:
    """Return a data folder with the law and the contract."""
    source = folder / "pages"
    source.mkdir()
    articles = (
        f"## Article {number} Berth {number}\n\n{write_article(number)}\n"
        for number in range(1, ARTICLES + 1)
    )
    (source / "law.md").write_text(f"# {LAW}\n\n" + "\n".join(articles), "utf-8")
    clauses = (
        f"## {number} Berth {number}\n\n{write_article(number)}\n" for number in range(1, 20)
    )
    (source / "contract.md").write_text(f"# {CONTRACT}\n\n" + "\n".join(clauses), "utf-8")
    settings = settings_of(folder)
    await run_ingestion(settings, [source], PlainReport(lambda _line: None))
    return folder
