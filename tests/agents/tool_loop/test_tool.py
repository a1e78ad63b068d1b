"""Each call has a result: that of the tool, or why there is none; and a record for the reply."""

from typing import Any

import pytest
from pydantic import BaseModel

from agents.tool_loop.tool import MOST_QUOTED_CHARACTERS, Reads, ToolAgent, Writes
from config.texts import load_texts
from envelope.outcome import Wrote
from envelope.specialists import SpecialistName, SpecialistProfile
from manager.result_limits import limit_result
from tools.calls import EffectClass, ReceiptKey, ReceiptState, ToolCaller, ToolErrorType, ToolResult
from tools.catalog import ToolCatalog, make_tool_set
from tools.tool import Tool

TEXTS = load_texts()


class PaymentInputs(BaseModel):
    amount: int


class Payment(BaseModel):
    amount: int


class PayTool(Tool[PaymentInputs, Payment]):
    """Pays, which somebody has to approve."""

    name = "pay"
    description = "Pay an amount."
    effect = EffectClass.DANGEROUS
    inputs = PaymentInputs
    output = Payment
    is_source = True
    most_cost_micros = 50_000

    def __init__(self) -> None:
        self.paid: list[int] = []

    async def run(self, inputs: PaymentInputs, caller: ToolCaller) -> Payment:
        self.paid.append(inputs.amount)
        return Payment(amount=inputs.amount)


class PageTool(Tool[PaymentInputs, Payment]):
    """Returns a page of text."""

    name = "read_page"
    description = "Read a page."
    inputs = PaymentInputs
    output = Payment

    def __init__(self, page: str) -> None:
        self._page = page

    async def run(self, inputs: PaymentInputs, caller: ToolCaller) -> Payment:
        return Payment(amount=inputs.amount)

    def render(self, output: Payment) -> str:
        return self._page


class MemoryReceipts:
    """Receipts of one process."""

    async def claim(self, key: ReceiptKey, *, was_approved: bool = False) -> tuple[str, bytes]:
        return ReceiptState.CLAIMED, b""

    async def finish(self, key: ReceiptKey, result: bytes) -> None: ...

    async def mark_unknown(self, key: ReceiptKey) -> None: ...


async def call(
    catalog: ToolCatalog,
    tool: str,
    groups: tuple[str, ...] = (),
    approvals: dict[str, bool] | None = None,
    **given: Any,
) -> Writes:
    reads = Reads(
        tool_call={"call_id": "r1-1", "tool": tool, "arguments": given, "depends_on": []},
        groups=groups,
        approvals=approvals or {},
    )
    receipts = MemoryReceipts()
    agent = ToolAgent(catalog=catalog, texts=TEXTS, open_receipts=lambda _run: receipts)
    outcome = await agent.work(reads)
    assert isinstance(outcome, Wrote)
    return outcome.writes


def read_result(writes: Writes) -> ToolResult:
    return ToolResult.model_validate(writes.multi_tool_results["r1-1"])


async def test_a_result_quotes_the_passages_that_it_found(catalog: ToolCatalog) -> None:
    writes = await call(catalog, "lookup", name="Article 83")

    [quoted] = read_result(writes).quoted
    assert "a fine of up to 4 %" in quoted.text
    assert quoted.citation.document_id == "penalties@2025"
    [record] = writes.tool_executions
    assert (record["tool_name"], record["success"]) == ("lookup", True)
    assert record["arguments"] == {"name": "Article 83"}


async def test_an_unknown_tool_is_a_result_that_names_the_nearest_one(
    catalog: ToolCatalog,
) -> None:
    result = read_result(await call(catalog, "lookups", name="Article 83"))

    assert result.error_type is ToolErrorType.HALLUCINATION
    assert result.nearest == "lookup"


@pytest.mark.parametrize(
    ("agent", "tool", "runs"),
    [
        ("classifier", "search", True),
        ("classifier", "general_search", True),
        ("classifier", "hybrid_search", False),
        ("classifier", "lookup", False),
        ("classifier", "search_fees", False),
        ("an unknown agent", "search", False),
        ("", "search_fees", True),
    ],
)
async def test_a_specialist_calls_the_tools_of_its_list_also_by_an_alias_and_no_others(
    catalog: ToolCatalog, agent: str, tool: str, runs: bool
) -> None:
    entry = {"search_fees": {"tool": "search", "description": "Find fees."}}
    extended = catalog.extend(make_tool_set(entry, catalog, "a test"))
    profile = SpecialistProfile(name=SpecialistName.CLASSIFIER, tools=("search",))
    made = ToolAgent(catalog=extended, texts=TEXTS, profiles={"classifier": profile})
    given = {"name": "Alfa"} if tool == "lookup" else {"query": "fee"}
    asked = {"call_id": "r1-1", "tool": tool, "arguments": given, "depends_on": [], "agent": agent}

    outcome = await made.work(Reads.model_validate({"tool_call": asked}))

    assert isinstance(outcome, Wrote)
    result = read_result(outcome.writes)
    assert (result.success, result.was_hallucinated) == (runs, not runs)


@pytest.mark.parametrize("groups", [(), ("staff",)])
async def test_a_tool_reads_only_what_the_person_may_read(
    catalog: ToolCatalog, groups: tuple[str, ...]
) -> None:
    result = read_result(await call(catalog, "lookup", groups, name="Omega"))

    assert not result.quoted


async def test_a_result_carries_a_bounded_amount_of_text(catalog: ToolCatalog) -> None:
    writes = await call(catalog, "search", query="carrier fee", limit=30)

    assert (
        sum(len(passage_text.text) for passage_text in read_result(writes).quoted)
        <= MOST_QUOTED_CHARACTERS
    )
    assert read_result(writes).data is None


async def test_a_requested_page_of_eleven_thousand_characters_is_returned_whole() -> None:
    page = "".join(f"POST /v1/orders/{number} returns 201. " for number in range(340))

    writes = await call(ToolCatalog([PageTool(page)]), "read_page", amount=1)

    assert len(page) > 11_000
    assert read_result(writes).text == page
    assert limit_result({"writes": writes.model_dump(mode="json")})["writes"] == (
        writes.model_dump(mode="json")
    )


async def test_a_dangerous_call_asks_first_and_runs_only_as_it_was_approved() -> None:
    tool = PayTool()
    catalog = ToolCatalog([tool])

    asking = await call(catalog, "pay", amount=5)
    [question] = asking.needs_input
    approved = await call(catalog, "pay", approvals={question.id: True}, amount=5)
    other = await call(catalog, "pay", approvals={question.id: True}, amount=500)

    assert question.text == 'Shall I run “pay”? With: `{"amount": 5}` (≤ 0.05 USD)'
    assert asking.multi_tool_results == {}
    assert read_result(approved).success
    assert other.needs_input, "an approval belongs to its arguments"
    assert tool.paid == [5]


async def test_arguments_too_long_to_show_whole_are_refused_and_nobody_is_asked() -> None:
    tool = PayTool()

    writes = await call(ToolCatalog([tool]), "pay", amount=10**900)

    assert writes.needs_input == ()
    assert read_result(writes).error_type is ToolErrorType.VALIDATION
    assert "a person cannot read" in (read_result(writes).error or "")
    assert tool.paid == []


async def test_a_denied_call_is_a_result_and_asks_no_second_time() -> None:
    tool = PayTool()
    catalog = ToolCatalog([tool])
    [question] = (await call(catalog, "pay", amount=5)).needs_input

    denied = await call(catalog, "pay", approvals={question.id: False}, amount=5)

    assert denied.needs_input == ()
    assert read_result(denied).error_type is ToolErrorType.APPROVAL
    assert tool.paid == []
