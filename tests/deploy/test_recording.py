"""What ended while no process recorded is recorded by whoever asks for the records."""

from pathlib import Path

from deploy.assembly.open_records import connect_records
from deploy.assembly.recording import record_waiting
from deploy.assembly.runtime import connect_runtime, desk, run_workers
from gateway.desk import Message
from records.store import Selection
from tests.support.app_harness import settings_of
from tests.support.empty_redis import play_redis


async def test_a_question_that_ended_without_a_recorder_is_recorded_once(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    endpoint = play_redis()
    store = connect_records(settings.records_url, settings.refdesk_data)
    store.prepare()
    async with (
        connect_runtime(settings, endpoint=endpoint) as runtime,
        run_workers(runtime, ("manager", "lang", "command"), None),
    ):
        for name in ("m1", "m2"):
            await desk(runtime, "cli").ask(Message("/help", "c", name, command="help"))
        assert not store.find(Selection())

        await record_waiting(runtime)
        await record_waiting(runtime)

    assert sorted(record.message_id for record in store.find(Selection())) == ["m1", "m2"]
    store.close()
