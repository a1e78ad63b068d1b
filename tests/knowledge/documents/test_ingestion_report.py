from tests.knowledge.documents.conftest import Desk


async def test_progress_is_reported_in_plain_lines(desk: Desk) -> None:
    for number in range(150):
        desk.write(f"{number}.md", f"# Page {number}\n\nText.\n")

    await desk.ingest()

    assert desk.lines[0] == f"reading 150 files from {desk.folder}"
    assert desk.lines[1].startswith("100 of 150 files read")
    assert desk.lines[-1].startswith(
        "150 added, 0 changed, 0 unchanged, 0 removed, 0 failed, 0 skipped; 150"
    )
