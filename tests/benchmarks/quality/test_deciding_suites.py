import json
from pathlib import Path

import pytest

from benchmarks.quality import conversation as conversation_suite
from benchmarks.quality import scope
from benchmarks.quality.conversation import compute_scores
from benchmarks.quality.scope import ScopeVerdict, at_acceptance, compute_rejection
from deploy.evaluation.questions import UnknownFormatError

PASSAGES = (
    "A routing rule sends messages to a supplier. Open Routing and press Add rule to make one.",
    "A rate plan holds the price of every destination. Prices are in euros per message part.",
    "Delivery reports arrive at the webhook of the account, signed with the webhook secret.",
    "An account may have sub-users. The owner sets the balance that a sub-user may spend.",
    "The sandbox accepts messages and sends none. It answers with invented delivery reports.",
    "Sender names are registered per country; unregistered names are replaced by a number.",
)


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def passages(folder: Path) -> None:
    write(
        folder / "passages.jsonl",
        [
            {"passage_id": f"p{number}", "doc": f"d{number}", "text": text}
            for number, text in enumerate(PASSAGES)
        ],
    )


def test_macro_f1_counts_every_decision_alike() -> None:
    figures = compute_scores([("answer", "answer"), ("answer", "answer"), ("ask", "answer")])

    assert figures["f1"] == {"answer": 0.8, "ask": 0.0, "refuse": 0.0}
    assert figures["macro_f1"] == pytest.approx(0.8 / 3, abs=1e-4)


def test_a_failed_question_is_no_right_decision() -> None:
    figures = compute_scores([("refuse", "failed"), ("refuse", "refuse")])

    assert figures["accuracy"] == 0.5
    assert figures["confusion"]["refuse"]["failed"] == 1  # type: ignore[index] # plain dicts


def test_the_threshold_lets_the_asked_share_pass_and_no_less() -> None:
    inside = [ScopeVerdict("in_scope", 0.1 * number, accepted=False) for number in range(1, 11)]
    far = [ScopeVerdict("far", 0.15, accepted=True), ScopeVerdict("far", 0.35, accepted=True)]

    figures = compute_rejection(at_acceptance([*inside, *far], 0.8))

    assert figures == {"accepted_in_scope": 0.8, "rejected_far": 0.5}


@pytest.mark.parametrize("suite", [conversation_suite, scope])
async def test_a_folder_of_something_else_is_named_with_what_was_expected(
    suite: object, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("nothing to measure", encoding="utf-8")

    with pytest.raises(UnknownFormatError, match="expected"):
        await suite.evaluate(tmp_path)  # type: ignore[attr-defined] # both modules have it


@pytest.mark.slow
async def test_questions_inside_and_outside_are_distinguished_on_a_small_collection(
    tmp_path: Path,
) -> None:
    passages(tmp_path)
    write(
        tmp_path / "queries.jsonl",
        [
            {"text": "How do I add a routing rule?", "label": "in_scope"},
            {"text": "Where do delivery reports arrive?", "label": "in_scope"},
            {"text": "Which wine goes with fish?", "label": "far"},
            {"text": "hello", "label": "chitchat"},
        ],
    )

    figures = await scope.evaluate(tmp_path)

    assert figures["at_95_percent_acceptance"] == {
        "accepted_in_scope": 1.0,
        "rejected_chitchat": 1.0,
        "rejected_far": 1.0,
    }


@pytest.mark.slow
async def test_the_documents_may_stand_in_the_folder_of_the_product(tmp_path: Path) -> None:
    documents, questions = tmp_path / "docs_sms", tmp_path / "scope"
    documents.mkdir()
    questions.mkdir()
    passages(documents)
    write(
        questions / "queries.jsonl",
        [{"text": "How do I add a routing rule?", "label": "in_scope", "product": "sms"}],
    )

    figures = await scope.evaluate(questions)

    assert figures["questions"] == 1


@pytest.mark.slow
async def test_every_task_goes_through_the_whole_flow_and_twice_the_same_way(
    tmp_path: Path,
) -> None:
    passages(tmp_path)
    history = [
        {"speaker": "user", "text": "What is a rate plan?"},
        {"speaker": "agent", "text": "It holds the price of every destination."},
    ]
    write(
        tmp_path / "tasks.jsonl",
        [
            {"query": "How do I make a routing rule?", "answerability": "ANSWERABLE"},
            {"query": "In which currency?", "history": history, "answerability": "PARTIAL"},
            {"query": "Which wine goes with fish?", "answerability": "UNANSWERABLE"},
            {"query": "thanks", "answerability": "CONVERSATIONAL"},
        ],
    )

    first = await conversation_suite.evaluate(tmp_path)
    second = await conversation_suite.evaluate(tmp_path)

    assert first == second
    assert first["tasks"] == 3
    assert first["by_label"]["UNANSWERABLE"] == {"refuse": 1}  # type: ignore[index] # plain dicts
