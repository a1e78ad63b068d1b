"""The suite `multistep` on small folders of its three kinds."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from deploy.evaluation.multistep.measures import Measured, compute_auc, compute_changes
from deploy.evaluation.multistep.suite import evaluate_multistep
from deploy.evaluation.multistep.task_files import load_multistep
from deploy.evaluation.questions import UnknownFormatError
from tests.knowledge.searching.conftest import WordEmbedder


def write(folder: Path, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    (folder / name).write_text("\n".join(json.dumps(row) for row in rows))


@pytest.mark.slow
async def test_a_chain_of_passages_is_found_by_the_loop_within_the_same_number(
    tmp_path: Path,
) -> None:
    texts = {
        "a": ("Allegory", "The Allegory was painted by Lorenzo Costa for the duke."),
        "b": ("Lorenzo Costa", "He lived long and taught many; his last home was Mantua."),
        **{f"x{n}": (f"Place {n}", f"Where the one of number {n} did die.") for n in range(6)},
    }
    write(
        tmp_path,
        "passages.jsonl",
        [{"pid": pid, "title": title, "text": text} for pid, (title, text) in texts.items()],
    )
    asked = "Where did the one who painted the Allegory die?"
    question = {"qid": "q", "set": "s", "question": asked, "gold_passages": ["a", "b"]}
    write(tmp_path, "questions.jsonl", [question])

    one = await evaluate_multistep(tmp_path, "search", k=3, embedder=WordEmbedder())
    several = await evaluate_multistep(tmp_path, "tools", k=3, embedder=WordEmbedder())

    assert one["all"] == {"tasks": 1, "recall@3": 0.5, "all@3": 0.0}
    assert several["all"] == {"tasks": 1, "recall@3": 1.0, "all@3": 1.0}


def test_a_folder_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormatError, match=r"expected tasks\.jsonl"):
        load_multistep(tmp_path)


def test_a_line_without_its_text_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "passages.jsonl", [{"pid": "a", "title": "A", "text": "t"}])
    write(tmp_path, "questions.jsonl", [{"qid": "q"}])

    with pytest.raises(UnknownFormatError, match="expected a text under 'question'"):
        load_multistep(tmp_path)


def test_two_versions_and_tasks_of_a_desk_are_read(tmp_path: Path) -> None:
    versions, desk = tmp_path / "versions", tmp_path / "desk"
    versions.mkdir()
    desk.mkdir()
    unit = {"unit_id": "AC-1", "title": "Policy", "version": "r4", "text": ""}
    write(versions, "units.jsonl", [unit, {**unit, "version": "r5", "text": "new"}])
    asked = {"qid": "q", "kind": "removed", "question": "?", "gold_old": ["AC-1"]}
    write(versions, "questions.jsonl", [asked])
    write(desk, "docs.jsonl", [{"doc_id": "d", "title": "D", "text": "t"}])
    write(desk, "tools.jsonl", [{"tool": "t", "doc": "does"}])
    write(
        desk,
        "tasks.jsonl",
        [{"task_id": "1", "scenario": "s", "gold_docs": ["d"], "gold_tools": ["t"]}],
    )

    assert load_multistep(versions).versions == ("r4", "r5")
    assert load_multistep(versions).tasks[0].gold == {"AC-1"}
    assert load_multistep(desk).tools == {"t": "does"}


@pytest.mark.slow
async def test_the_named_tools_are_those_that_the_plan_of_the_loop_names(tmp_path: Path) -> None:
    page = "A lost card is closed by close_card_17, after its holder was asked for the number."
    others = [{"doc_id": f"d{n}", "title": f"Page {n}", "text": f"Note {n}."} for n in range(3)]
    write(tmp_path, "docs.jsonl", [{"doc_id": "d", "title": "Cards", "text": page}, *others])
    write(
        tmp_path,
        "tools.jsonl",
        [
            {"tool": "close_card_17", "doc": "Close a debit card.", "args": ["card_id"]},
            {"tool": "ship_parcel", "doc": "Ship a parcel.", "args": ["address"]},
        ],
    )
    matter = "\n".join(f"- The caller number {n} has lost a wallet on this day." for n in range(20))
    task = {"task_id": "1", "scenario": f"Please close my debit card.\n{matter}"}
    write(tmp_path, "tasks.jsonl", [{**task, "gold_docs": ["d"], "gold_tools": ["close_card_17"]}])

    found = await evaluate_multistep(tmp_path, "tools", embedder=WordEmbedder())

    assert found["tools"]["all"] == {  # type: ignore[index] # figures by part
        "tool recall": 1.0,
        "tool precision": 1.0,
        "tools that do not exist": 0,
    }


def test_figures_are_those_of_their_definitions() -> None:
    def make(answerable: bool, confidence: float) -> Measured:
        return Measured("s", frozenset(), (), answerable, confidence)

    assert compute_auc([make(True, 0.9), make(True, 0.4), make(False, 0.4)]) == 0.75
    assert compute_auc([make(True, 0.9)]) is None
    assert compute_changes(frozenset("ab"), frozenset("bc")) == 0.5
    assert compute_changes(frozenset(), frozenset()) == 1.0


@pytest.mark.slow
async def test_every_member_of_a_group_is_found_by_the_swarm_within_the_same_number(
    tmp_path: Path,
) -> None:
    places = ("Amrum", "Borkum", "Calder")
    cards = [{"card_id": "g", "page": "County", "text": f"Which islands? {'; '.join(places)}"}]
    cards += [
        {"card_id": place, "page": place, "text": f"How high is the hill on {place}? {n} metres"}
        for n, place in enumerate(places)
    ]
    cards += [
        {"card_id": f"x{n}", "page": f"Hill {n}", "text": f"Which islands have hill {n}?"}
        for n in range(8)
    ]
    write(tmp_path, "cards.jsonl", cards)
    asked = "How high are the hills on all islands?"
    question = {"qid": "q", "question": asked, "gold_cards": ["g", *places]}
    write(tmp_path, "questions.jsonl", [question])

    swarm = await evaluate_multistep(tmp_path, "swarm", k=4, embedder=WordEmbedder())

    assert swarm["all"] == {"tasks": 1, "recall@4": 1.0, "all@4": 1.0}


@pytest.mark.slow
async def test_the_documents_of_a_portfolio_are_selected_by_the_swarm(tmp_path: Path) -> None:
    texts = {
        "a": ("P1", "The Seller may audit the books and records of the Buyer at any time."),
        "b": ("P1", "The Buyer pays the price within thirty days of the invoice."),
        "c": ("P2", "The Buyer may audit the books and records of the Seller at any time."),
    }
    write(
        tmp_path,
        "contracts.jsonl",
        [
            {"doc_id": name, "portfolio": portfolio, "title": f"Contract {name}", "text": text}
            for name, (portfolio, text) in texts.items()
        ],
    )
    head = "Which contracts in portfolio P1 answer yes: "
    audit, escrow = "Is there a right to audit the books?", "Is source code held in escrow?"
    row = {"portfolio": "P1"}
    write(
        tmp_path,
        "questions.jsonl",
        [
            {**row, "qid": "1", "kind": "which", "question": f"{head}{audit}", "gold_docs": ["a"]},
            {**row, "qid": "2", "kind": "none", "question": f"{head}{escrow}", "gold_docs": []},
        ],
    )

    swarm = await evaluate_multistep(tmp_path, "swarm", embedder=WordEmbedder())

    assert swarm["which"] == {"questions": 1, "all": 1.0, "P1": 1.0}
    assert swarm["none"] == {"questions": 1, "all": 1.0, "P1": 1.0}
