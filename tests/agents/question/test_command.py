import pytest

from agents.question.command import COMMANDS, CommandAgent, Reads, Writes
from config.texts import load_texts
from envelope.conversation import HANDED_OVER, PERSON_REPLY, Preferences
from envelope.outcome import Wrote
from gateway.text import parse_command

TEXTS = load_texts()


async def obey(command: str, *arguments: str, **more: object) -> Writes:
    reads = Reads.model_validate({"command": command, "arguments": arguments, **more})
    outcome = await CommandAgent(texts=TEXTS).work(reads)
    assert isinstance(outcome, Wrote)
    return outcome.writes


@pytest.mark.parametrize(
    ("command", "forget"), [("clear_history", "history"), ("clear_all", "all")]
)
async def test_clearing_forgets_what_it_says(command: str, forget: str) -> None:
    assert (await obey(command)).forget == forget


GERMAN = ("de", "DE", "German", "Deutsch", "alemán", "немецкий", "德语", "de-AT", "de_CH")
CHINESE = ("zh-Hant", "zh-TW", "zh_HK", "繁體中文", "繁体中文", "Traditional Chinese")


@pytest.mark.parametrize(
    ("spelling", "language", "name"),
    [
        *((spelling, "de", "Deutsch") for spelling in GERMAN),
        *((spelling, "zh-Hant", "繁體中文") for spelling in CHINESE),
    ],
)
async def test_a_language_is_understood_in_many_spellings(
    spelling: str, language: str, name: str
) -> None:
    reply = await obey("set_language", spelling)

    assert reply.remember_preferences == Preferences(language=language, explicit=True)
    assert reply.response == TEXTS.text("language_set", language, language_name=name)


async def test_a_language_without_fixed_texts_can_be_chosen() -> None:
    reply = await obey("set_language", "sv")

    assert reply.remember_preferences == Preferences(language="sv", explicit=True)


@pytest.mark.parametrize("arguments", [(), ("Klingon",), ("x" * 500,), ("{language}",)])
async def test_an_unknown_language_changes_nothing_and_shows_a_way_on(
    arguments: tuple[str, ...],
) -> None:
    reply = await obey("set_language", *arguments, preferences={"language": "fr"})

    assert reply.remember_preferences is None
    assert "allemand" in reply.response
    assert len(reply.response) < 500


async def test_statistics_are_worded_in_the_language_of_the_user() -> None:
    reply = await obey(
        "get_stats",
        preferences={"language": "de"},
        statistics={"questions": 3.0, "outcome_answered": 2.0, "processing_seconds": 1.25},
    )

    assert reply.response.splitlines() == [
        TEXTS.text("statistics_title", "de"),
        "- Fragen: 3",
        "- beantwortet: 2",
        "- Sekunden Bearbeitungszeit: 1.25",
    ]


async def test_no_statistics_are_said_to_be_none() -> None:
    assert (await obey("get_stats")).response == TEXTS.text("statistics_none", "en")


@pytest.mark.parametrize("command", ["", "reboot", "x" * 10_000, "{command}"])
async def test_an_unknown_command_lists_the_known_ones(command: str) -> None:
    reply = await obey(command)

    assert all(known in reply.response for known in COMMANDS)
    assert reply.forget == ""
    assert len(reply.response) < 300


@pytest.mark.parametrize("language", TEXTS.languages)
async def test_help_explains_every_command_in_every_language(language: str) -> None:
    reply = await obey("/help", language=language)

    assert [line.split(":")[0] for line in reply.response.splitlines()[1:]] == [
        f"- /{command}" for command in COMMANDS
    ]


@pytest.mark.parametrize("named", ["[x](//evil.test)", "https://evil.test", "<https://evil.test>"])
async def test_a_repeated_command_contains_no_links(named: str) -> None:
    for reads in (
        Reads(command="set_language", arguments=(named,)),
        Reads(command=named),
    ):
        outcome = await CommandAgent(texts=TEXTS).work(reads)

        assert isinstance(outcome, Wrote)
        assert "evil.test" not in outcome.writes.response


@pytest.mark.parametrize("told", [("sent",), ("failed",), ("sent", "mail_asked")])
async def test_whether_a_person_was_asked_is_told_in_the_language_of_the_user(
    told: tuple[str, ...],
) -> None:
    reply = await obey(HANDED_OVER, "de", *told)

    texts = (TEXTS.text(f"handover_{result}", "de") for result in told)
    assert reply.response == " ".join(texts)


async def test_the_answer_of_a_person_is_shown_as_one_and_is_no_format() -> None:
    reply = await obey(PERSON_REPLY, "de", "Nehmen Sie {topic}.")

    assert reply.response == "Ein Mensch hat geantwortet:\n\nNehmen Sie {topic}."


@pytest.mark.parametrize("typed", [PERSON_REPLY, HANDED_OVER])
async def test_no_text_of_a_user_is_a_command_of_the_desk_itself(typed: str) -> None:
    for text in (f"/{typed} en x", f"/{typed.replace(' ', '_')} en x", f"/{typed}\u00a0en x"):
        command, arguments = parse_command(text, ())

        assert command != typed
        assert command is None or "A person" not in (await obey(command, *arguments)).response
