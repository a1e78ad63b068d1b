from pathlib import Path

from structlog.testing import capture_logs

from deploy.assembly.descriptions import FILE, MOST_KEPT, KeptDescriptions


async def test_what_is_kept_is_there_for_the_next_process_until_it_is_cleared(
    tmp_path: Path,
) -> None:
    await KeptDescriptions(tmp_path).put("one", b"1")
    await KeptDescriptions(tmp_path).put("one", b"2")
    after = KeptDescriptions(tmp_path)

    assert (await after.get("one"), await after.get("two")) == (b"2", None)
    await after.clear()
    await after.clear()
    assert await after.get("one") is None


async def test_only_the_last_answers_are_kept(tmp_path: Path) -> None:
    kept = KeptDescriptions(tmp_path, most=3)

    for number in range(5):
        await kept.put(str(number), b"answer")

    found = [number for number in range(5) if await kept.get(str(number)) is not None]
    assert found == [2, 3, 4]
    assert MOST_KEPT > 256


async def test_a_file_that_is_no_database_is_replaced_and_it_is_logged(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database" * 1000)
    kept = KeptDescriptions(tmp_path)

    with capture_logs() as logs:
        assert await kept.get("one") is None
    await kept.put("one", b"1")

    assert [log["event"] for log in logs if log["event"].startswith("kept")] == [
        "kept_descriptions_unusable"
    ]
    assert await kept.get("one") == b"1"


async def test_a_folder_that_cannot_be_written_keeps_nothing_and_stops_nobody(
    tmp_path: Path,
) -> None:
    (tmp_path / FILE).mkdir()
    kept = KeptDescriptions(tmp_path)

    with capture_logs() as logs:
        await kept.put("one", b"1")

    assert await kept.get("one") is None
    assert logs[-1]["event"] == "kept_descriptions_unusable"
