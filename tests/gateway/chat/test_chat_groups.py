"""For whose groups a chat is answered."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from config.errors import SettingsError
from deploy.assembly.gateways.chat_gateways import read_chat_groups
from gateway.chat.ports import ChatGroups, MembershipError

FILE = """
[slack.people]
U1 = ["hr", "board"]
[slack.places]
C1 = ["sales"]
[slack.user_groups]
S1 = ["team"]
[telegram.people]
"7" = ["hr"]
[telegram.places]
"-100" = ["sales"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "groups.toml"
    made.write_text(FILE)
    return made


@pytest.mark.parametrize(
    ("channel", "person", "post", "groups"),
    [
        ("slack", "U1", {"channel": "D1"}, ("board", "hr")),
        ("slack", "U2", {"channel": "D1"}, ()),
        ("slack", "U1", {"channel": "C1", "thread": "1.0"}, ("sales",)),
        ("slack", "U1", {"channel": "C2"}, ()),
        ("slack", "U1", {"channel": "G1"}, ()),
        ("slack", "C1", {"channel": "D1"}, ()),
        ("telegram", "7", {"chat": "7"}, ("hr",)),
        ("telegram", "8", {"chat": "8"}, ()),
        ("telegram", "7", {"chat": "-100"}, ("sales",)),
        ("telegram", "7", {"chat": "-200"}, ()),
        ("telegram", "", {"chat": "7"}, ()),
        ("slack", "", {}, ()),
    ],
)
async def test_in_a_private_chat_the_person_counts_and_elsewhere_the_place(
    file: Path, channel: str, person: str, post: dict[str, str], groups: tuple[str, ...]
) -> None:
    assert await read_chat_groups(file, channel).find(person, post) == groups


async def test_the_user_groups_of_the_file_are_those_that_are_asked_about(file: Path) -> None:
    @dataclass
    class FakeUserGroups:
        ids: list[str]

        async def find(self, person: str) -> list[str]:
            return self.ids if person == "U1" else []

    groups = read_chat_groups(file, "slack", lambda ids: FakeUserGroups([*ids]))

    await groups.warm()
    assert groups.memberships == FakeUserGroups(["S1"])
    assert await groups.find("U1", {"channel": "D1"}) == ("board", "hr", "team")
    assert await groups.find("U2", {"channel": "D1"}) == ()
    assert await groups.find("U1", {"channel": "C1"}) == ("sales",)


async def test_a_platform_that_does_not_answer_is_logged_at_the_start_and_stops_nothing() -> None:
    class SilentUserGroups:
        async def find(self, person: str) -> list[str]:
            raise MembershipError("no answer")

    groups = ChatGroups(user_groups={"S1": ("hr",)}, memberships=SilentUserGroups())
    with capture_logs() as logged:
        await groups.warm()
        await ChatGroups(memberships=SilentUserGroups()).warm()

    assert [line["event"] for line in logged] == ["user_groups_unavailable"]
    with pytest.raises(MembershipError):
        await groups.find("U1", {"channel": "D1"})
    assert await groups.find("U1", {"channel": "C1"}) == ()


def test_without_a_file_chats_have_no_groups() -> None:
    assert read_chat_groups(None, "slack") == ChatGroups()


@pytest.mark.parametrize(
    "text",
    [
        "[slak.people]\n",
        "[slack.persons]\n",
        "[telegram.user_groups]\nS1 = ['hr']",
        "[slack.user_groups]\n" + "\n".join(f"S{n} = ['g{n}']" for n in range(65)),
        "slack = 1",
        "[slack.people]\nU1 = 'hr'",
        "[slack.people]\nU1 = ['']",
        "[[",
        "\udcff",
    ],
)
def test_a_file_that_cannot_be_used_is_named_at_the_start(tmp_path: Path, text: str) -> None:
    file = tmp_path / "groups.toml"
    file.write_bytes(text.encode(errors="surrogateescape"))

    with pytest.raises(SettingsError, match="CHAT_GROUPS_FILE"):
        read_chat_groups(file, "slack")
    with pytest.raises(SettingsError, match="cannot be used"):
        read_chat_groups(tmp_path / "missing.toml", "slack")
