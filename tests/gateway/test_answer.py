"""What leaves the desk is safe in every field, and says who answered."""

import json
from typing import Any

from agents.search.passages import show_passages
from citations.links import keep_links
from citations.sources import cite_reference, collect_allowed, with_addresses
from envelope.sources import SourceReference
from gateway.answer import Answer, answer_of, split_off_passages, write_heading
from gateway.http.routes.completion_form import annotations_of, extensions_of

EVIL = "https://evil.example/login"


REPLY: dict[str, Any] = {
    "conversation_id": "c1",
    "message_id": "m1",
    "outcome": "clarification",
    "text": "Which one?",
    "suggested_actions": [
        {"label": f"Sign in at {EVIL}", "value": f"Sign in at {EVIL}", "kind": "option"}
    ],
    "pause": {
        "id": "p1",
        "kind": "information",
        "expires": 1.0,
        "questions": [
            {
                "id": "q1",
                "text": f"Look at {EVIL}",
                "suggestions": [f"[here]({EVIL})"],
                "field": {"name": "site", "type": "choice", "choices": [EVIL, "ours"]},
            }
        ],
    },
    "plan_rounds": [{"round": 1, "intent": f"open {EVIL}", "reasoning": f"[see]({EVIL})"}],
    "tasks": [{"task_id": "t1", "title": f"Read {EVIL}", "state": "failed", "error": EVIL}],
    "cancelled_tasks": [f"Read {EVIL}"],
    "routing": {"reasoning": f"because of {EVIL}"},
    "triage": {"reason": EVIL},
    "assessment": {"gaps": [EVIL]},
    "errors": [{"message": EVIL}],
    "faults": [{"what": EVIL}],
    "sequence_notes": [EVIL],
    "further_round": {"why": EVIL},
    "way_fallback": EVIL,
    "tool_calls": [
        {
            "tool_name": "search",
            "arguments": {"query": EVIL},
            "success": False,
            "error_type": "execution",
            "error": f"the server said: go to {EVIL}",
        }
    ],
}


def test_no_field_of_an_answer_carries_a_link_that_nobody_checked() -> None:
    shown = answer_of(REPLY, words=lambda key, _: key, with_usage=True)

    written = json.dumps(shown.model_dump(mode="json"))
    assert "evil" not in written
    assert "Read [address removed]" in written
    assert shown.tasks is not None
    assert shown.pause is not None


def test_a_zero_width_space_hides_no_address() -> None:
    reply = {
        **REPLY,
        "text": "Sign in at ev\u200bil.exam\u200bple/login or https:\u200b//evil.example",
    }

    shown = answer_of(reply, words=lambda key, _: key)

    assert "evil" not in shown.text.replace("\u200b", "")


PLACES = ("Rules", "Rules > Limits", "Prices")


TEXTS = ("Open **Routing**.", "Up to [1] list of `rules[2]`.", "| A |\n|---|\n| 1 |")


def make_reply(*, below: str = "", texts: tuple[str, ...] = TEXTS) -> dict[str, Any]:
    shown = [
        {"number": number, "place": place, "text": text}
        for number, (place, text) in enumerate(zip(PLACES, texts, strict=True), start=1)
    ]
    parts = [f"**{item['place']}** [{item['number']}]\n\n{item['text']}" for item in shown]
    return {
        "outcome": "answered",
        "conversation_id": "c",
        "message_id": "m",
        "text": "\n\n".join(("No model.", *parts, *([below] if below else []))),
        "sources": [
            {"number": number, "title": place, "url": f"https://docs.test/{number}"}
            for number, place in enumerate(PLACES, start=1)
        ],
        "answered_by": "search",
        "fallback_reason": "no_model",
        "passages": {"notice": "No model.", "shown": shown, "marked": ["Routing"]},
    }


def show(reply: dict[str, Any]) -> Answer:
    return answer_of(reply, words=lambda key, _language: key)


def test_a_reply_says_that_the_search_answered_and_why_and_has_the_passages_apart() -> None:
    answer = show(make_reply())

    assert (answer.answered_by, answer.fallback_reason) == ("search", "no_model")
    assert (answer.model, answer.quality_score) == (None, None)
    assert answer.passages is not None
    assert [passage.text for passage in answer.passages.shown] == list(TEXTS)
    assert answer.passages.marked == ("Routing",)


def test_the_address_of_the_sender_of_a_mail_stays_in_titles_and_in_headings() -> None:
    mail = "Prices, `anna@acme.test`"
    source = SourceReference(number=1, chunk_id="m#0", title="Prices, anna@acme.test", span=(0, 4))
    passages = show_passages("", [source], "Rule", (), lambda key, **_: key)
    allowed = collect_allowed([source], "Rule")
    text = keep_links(passages.text, allowed).text
    (used,) = with_addresses([cite_reference(source, 1)], [source], "Rule", text)

    answer = show(
        {
            **make_reply(),
            "text": text,
            "sources": [{**used.model_dump(mode="json"), "crumbs": [source.title]}],
            "passages": {"shown": [shown.model_dump() for shown in passages.shown]},
        }
    )

    assert answer.text == f"**{mail}** [1]\n\nRule"
    assert answer.passages is not None
    assert write_heading(answer.passages.shown[0]) == f"**{mail}** [1]"
    assert (answer.sources[0].title, answer.sources[0].crumbs) == (mail, (mail,))


def test_passages_lead_nowhere_but_to_the_sources() -> None:
    hostile = (
        "[x](https://evil.test) \u202ehidden",
        "[docs](https://docs.test/1)",
        "https://evil.test/a",
    )

    answer = show(make_reply(texts=hostile))

    assert answer.passages is not None
    assert [passage.text for passage in answer.passages.shown] == [
        "x hidden",
        "[docs](https://docs.test/1)",
        "[address removed]",
    ]
    assert "evil" not in answer.text


def test_the_further_passages_can_be_folded_and_what_stands_below_them_is_not() -> None:
    head, more = split_off_passages(show(make_reply(below="You also asked:")))

    assert head == f"No model.\n\n**Rules** [1]\n\n{TEXTS[0]}\n\nYou also asked:"
    assert more.startswith("**Rules > Limits** [2]")
    assert more.endswith(TEXTS[2])


def test_an_answer_of_a_model_has_nothing_to_fold() -> None:
    answer = Answer(conversation_id="c", message_id="m", outcome="answered", text="Yes. [1]")

    assert split_off_passages(answer) == ("Yes. [1]", "")


def test_openai_clients_get_one_annotation_for_each_passage_and_the_rest_in_the_extension() -> None:
    answer = show(make_reply())

    notes: Any = annotations_of(answer)
    cited = [note["url_citation"] for note in notes]

    assert [item["url"] for item in cited] == [f"https://docs.test/{n}" for n in (1, 2, 3)]
    assert [answer.text[item["start_index"] : item["end_index"]] for item in cited] == [
        "[1]",
        "[2]",
        "[3]",
    ]
    refdesk: Any = extensions_of(answer)["refdesk"]
    assert refdesk["answered_by"] == "search"
    assert len(refdesk["passages"]["shown"]) == 3
