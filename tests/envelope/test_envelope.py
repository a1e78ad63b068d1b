import json
from dataclasses import fields
from pathlib import Path
from typing import Unpack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from envelope.envelope import (
    SCHEMA_VERSION,
    DecodeError,
    Envelope,
    EnvelopeChanges,
    Hop,
    NewerVersionError,
    apply_delta,
    decode,
)
from envelope.payload import ATTRIBUTES, CATALOGUE
from envelope.question import Question, shard_of

GOLDEN = Path(__file__).parent / "golden"


def envelope(**changes: Unpack[EnvelopeChanges]) -> Envelope:
    return Envelope(
        tenant="default",
        assistant="default",
        channel="cli",
        conversation_id="c-1",
        message_id="m-1",
        create_ts=1.5,
        update_ts=2.5,
        deadline_ts=121.5,
    ).replace(**changes)


def test_a_changed_copy_knows_every_attribute_of_an_envelope() -> None:
    assert EnvelopeChanges.__annotations__.keys() == {field.name for field in fields(Envelope)}


def test_an_attribute_that_no_envelope_has_is_refused() -> None:
    with pytest.raises(TypeError, match=r"unknown attributes of an envelope: \['languge'\]"):
        envelope().replace(languge="en")  # type: ignore[call-arg]


def test_an_envelope_survives_the_wire() -> None:
    sent = envelope(
        hop=Hop(role="lang", status="wrote", wrote=("language",)),
        payload={"text": "¿Cómo? 你好 🙂", "nested": {"deep": [1, None, {"x": 0.5}]}},
    )

    assert decode(sent.encode()) == sent


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
PAYLOADS = st.dictionaries(st.sampled_from("abcdef"), VALUES)


@settings(derandomize=True, database=None)
@given(PAYLOADS, PAYLOADS)
def test_a_frame_is_restored_from_a_base_frame_and_a_delta(
    before: dict[str, JsonValue], writes: dict[str, JsonValue]
) -> None:
    base = envelope(payload=before)
    hop = Hop(role="lang", status="wrote", wrote=tuple(writes))
    later = base.replace(hop=hop, process_count=7, payload={**before, **writes})

    part = later.delta_from(base)

    assert part is not None
    assert decode(apply_delta(base.encode(), part)) == decode(later.encode())
    assert decode(apply_delta(base.encode(), b"{}")) == decode(base.encode())


def test_a_removed_attribute_cannot_be_encoded_as_a_delta() -> None:
    assert envelope(payload={"a": 1}).delta_from(envelope(payload={"a": 1, "b": 2})) is None


@pytest.mark.parametrize("part", [b"", b"[]", b'{"payload": 1}', b"\xff"])
def test_an_invalid_part_is_rejected(part: bytes) -> None:
    with pytest.raises(ValueError, match=r"expected|parsing"):
        apply_delta(envelope().encode(), part)


def test_an_envelope_without_groups_is_a_frame_that_earlier_versions_read() -> None:
    plain, grouped = envelope().with_groups(()), envelope().with_groups(("hr", "sales"))

    assert json.loads(plain.encode())["schema_version"] == 1
    assert "groups" not in json.loads(plain.encode())
    assert json.loads(grouped.encode())["schema_version"] == 2
    assert not {"branch", "gathered"} & {*json.loads(plain.encode()), *json.loads(grouped.encode())}
    assert decode(grouped.encode()).groups == ("hr", "sales")


def test_a_delta_neither_holds_nor_changes_the_groups() -> None:
    base = envelope(payload={"a": 1}).with_groups(("hr",))

    part = base.replace(payload={"a": 1, "b": 2}).delta_from(base)

    assert part is not None
    assert "groups" not in json.loads(part)
    assert decode(apply_delta(base.encode(), part)).groups == ("hr",)


def test_a_branch_begins_with_a_payload_and_hops_that_are_its_own() -> None:
    trunk = envelope(process_count=4, total_processing_time=2.0, payload={"text": "all"})

    branch = trunk.with_groups(("hr",)).with_branch("t1", {"text": "part"})

    assert (branch.process_count, branch.total_processing_time, branch.hop) == (0, 0.0, None)
    assert decode(branch.encode()) == branch
    assert (branch.branch, branch.groups, branch.payload) == ("t1", ("hr",), {"text": "part"})


def test_results_of_branches_travel_in_whole_frames_only() -> None:
    base = envelope(payload={"a": 1})
    gathered = base.with_gathered({"t1": {"status": "completed"}})

    assert decode(gathered.encode()) == gathered
    assert gathered.delta_from(base) is None
    assert base.delta_from(base) is not None


def test_a_changed_flow_travels_in_whole_frames_only() -> None:
    base = envelope(payload={"a": 1})

    assert base.replace(flow="specialists@2").delta_from(base) is None


def test_change_is_a_copy() -> None:
    first = envelope()

    second = first.replace(target_role="lang")

    assert (first.target_role, second.target_role) == ("", "lang")


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_envelopes_of_every_schema_version_stay_readable(version: int) -> None:
    frame = (GOLDEN / f"v{version}.json").read_bytes()

    decoded = decode(frame)

    assert decoded.schema_version == version
    assert decoded.payload["text"] == "How do I configure SMS routing rules?"


def test_an_envelope_of_a_newer_version_is_refused_and_kept() -> None:
    frame = json.dumps({"schema_version": SCHEMA_VERSION + 1, "new": True}).encode()

    with pytest.raises(NewerVersionError, match="update this worker") as caught:
        decode(frame)

    assert caught.value.frame == frame


@given(st.binary(max_size=200))
def test_random_bytes_are_a_decode_error_that_keeps_them(frame: bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(frame)

    assert caught.value.frame == frame


@given(st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner)))
def test_json_that_is_not_an_envelope_is_a_decode_error(value: object) -> None:
    with pytest.raises(DecodeError):
        decode(json.dumps(value).encode())


def test_json_nested_too_deeply_is_a_decode_error() -> None:
    with pytest.raises(DecodeError):
        decode(b'{"payload":' + b"[" * 100_000 + b"]" * 100_000 + b"}")


def test_an_unknown_attribute_is_refused() -> None:
    frame = json.dumps({**json.loads(envelope().encode()), "role": "admin"}).encode()

    with pytest.raises(DecodeError, match="'role'"):
        decode(frame)


def test_a_conversation_always_lives_in_the_same_shard() -> None:
    question = Question(tenant="a", assistant="b", conversation_id="c", message_id="1")
    other = question.model_copy(update={"message_id": "2"})

    assert shard_of(question.conversation, 16) == shard_of(other.conversation, 16)


def test_conversations_spread_over_the_shards() -> None:
    shards = [shard_of(("a", "b", str(number)), 8) for number in range(800)]

    assert all(60 <= shards.count(shard) <= 140 for shard in range(8))


def test_the_catalogue_names_no_attribute_twice() -> None:
    assert len(ATTRIBUTES) == len(CATALOGUE)
