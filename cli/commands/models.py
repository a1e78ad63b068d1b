"""Checks the configured models: their tasks, whether they respond, and which inputs they accept."""

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from ipaddress import ip_address
from urllib.parse import urlsplit

from agents.roster import AGENTS
from cli.printing import WIDTH, print_line, say_json, wrap
from config.settings import Settings, load_settings
from deploy.assembly.model_choice import find_context_tokens, vendor_access
from deploy.assembly.models import make_registry
from envelope.tool_loop import WayName
from llm.errors import ModelError
from llm.port import TextListener, ToolConversation, ToolDescription, Usage, UserMessage
from llm.prices import cost_usd
from llm.registry import Registry
from llm.tasks.question import TRANSLATE, TranslateInputs
from llm.tasks.tool_loop import REASON
from llm.vendors.catalogue import ModelName, Vendor, VendorAccess, parse_models, vendors_by_name
from llm.vendors.context_window import OLLAMA_DEFAULT, ContextWindow, find_window

EXIT_FAULTS = 9
PROMPT = TranslateInputs(text="Wie lange hat die Bibliothek geöffnet?", language="de")
"""A small prompt whose answer has the same format as the answers of other tasks."""
LOOK_UP = ToolConversation(
    task=REASON.name,
    messages=(UserMessage(text="Call the tool `search` for the opening hours of the library."),),
    tools=(
        ToolDescription(
            name="search",
            description="Searches the documents.",
            input_schema={
                "type": "object",
                "properties": {"query": {"type": "string"}},
                "required": ["query"],
            },
        ),
    ),
    max_output_tokens=256,
)
"""A small conversation that a model should continue with a tool call."""
INSTRUCTIONS = 2_000
"""Approximate number of tokens of the instructions and the conversation in a prompt."""
ANSWERED = Usage(output_tokens=800)
"""Approximate number of tokens that models write for a typical question: understanding, answer, and
judgement.
"""
_TASKS = dict.fromkeys(spec.model_task for spec in AGENTS if spec.model_task is not None)
ORIGINS = {
    "server": "reported by its server",
    "server_default": "default of its server",
    "price_list": "from the price list",
}
FIELD = 10
MODEL_SECONDS = 60.0
"""The time limit of each of the two prompts; loading a model may take most of it."""
_NO_MODEL = (
    "No model is configured: Refdesk shows the passages that its search finds. Set GEN_MODEL, for "
    "example to gpt-5-mini@openai with OPENAI_API_KEY, or to qwen3:8b@ollama for a model on this "
    "machine; docs/local-models.md describes the latter."
)
_LEAVES = {
    True: "another machine: questions and passages of documents are sent there",
    False: "this machine",
}
_FORMS = {
    "schema": "output follows a JSON schema",
    "object": "output is JSON without a schema; an answer may require a second attempt",
    "text": "output is text; the format is described in the prompt, and an answer may require "
    "a second attempt",
}

_STREAMS = {
    True: "sends its answer while it is written",
    False: "sends its answer only when it is complete, so that no draft is shown",
}


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """The result of checking one model; `seconds` is the duration of a small prompt. `problem` is
    empty if the model answered; `tools_problem` is empty if the model called a tool, which is
    required only if `needs_tools` is true. `question_usd` is the estimated cost of a typical
    question if this model performs all tasks.
    """

    model: str
    tasks: Sequence[str]
    address: str
    leaves_machine: bool
    problem: str = ""
    seconds: float | None = None
    answer_form: str = ""
    streams: bool = True
    tools_problem: str = ""
    needs_tools: bool = False
    window: ContextWindow | None = None
    needed_tokens: int = 0
    question_usd: Decimal | None = None

    @property
    def is_cut(self) -> bool:
        """Whether the context window of the model is smaller than the prompts."""
        return self.window is not None and self.window.tokens < self.needed_tokens

    @property
    def is_faulty(self) -> bool:
        """Whether the desk cannot use the model as configured."""
        return bool(self.problem or self.is_cut or (self.needs_tools and self.tools_problem))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk models`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = (
        f"exit status: 0 every model works, {EXIT_FAULTS} a model does not answer, its context "
        "window is too small, or it does not support the tool calls that the setting WAY requires; "
        "1 error. Each model receives two small prompts, which the vendor may charge for."
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk models`."""
    checks = asyncio.run(check_models(load_settings()))
    if chosen.json:
        say_json([_as_json(check) for check in checks])
    elif not checks:
        for line in wrap(_NO_MODEL):
            print_line(line)
    for check in () if chosen.json else checks:
        for line in _describe(check):
            print_line(line)
        print_line()
    return EXIT_FAULTS if any(check.is_faulty for check in checks) else 0


async def check_models(settings: Settings) -> list[ModelCheck]:
    """Check all configured models in parallel, in the order of first use."""
    access = vendor_access(settings)
    vendors = vendors_by_name(access)
    tasks: dict[ModelName, list[str]] = {}
    for task in _TASKS:
        for name in parse_models(settings.model_of(task), vendors):
            if not name.is_local:
                tasks.setdefault(name, []).append(task)
    registry = make_registry(settings)
    try:
        for name in tasks:
            # Importing a client takes seconds, which must not count as the model's time.
            with suppress(ModelError):
                registry.vendor_model(name)
        async with asyncio.TaskGroup() as group:
            checks = [
                group.create_task(
                    _check(
                        name,
                        used,
                        vendors[name.provider],
                        access.get(name.provider, VendorAccess()),
                        registry,
                        needed_tokens=find_context_tokens(settings) + INSTRUCTIONS,
                        needs_tools=settings.way is not WayName.SEARCH,
                    )
                )
                for name, used in tasks.items()
            ]
    finally:
        await registry.close()
    return [check.result() for check in checks]


async def _check(
    name: ModelName,
    tasks: Sequence[str],
    vendor: Vendor,
    access: VendorAccess,
    registry: Registry,
    *,
    needed_tokens: int,
    needs_tools: bool,
) -> ModelCheck:
    address = access.base_url or vendor.base_url or ""
    check = ModelCheck(str(name), tasks, address, _leaves_machine(address), needs_tools=needs_tools)
    listener = TextListener(TRANSLATE.name)
    try:
        async with asyncio.timeout(MODEL_SECONDS):
            model = registry.vendor_model(name)
            answer = await model.ask(TRANSLATE, PROMPT, listener=listener)
    except Exception as error:  # noqa: BLE001 - the error is the result
        return replace(check, problem=_describe_problem(error))
    try:
        async with asyncio.timeout(MODEL_SECONDS):
            step = await model.converse(LOOK_UP)
            tools_problem = (
                ""
                if step.message.calls
                else "the model did not call the tool that the prompt requested"
            )
    except Exception as error:  # noqa: BLE001 - likewise
        tools_problem = _describe_problem(error)
    usage = replace(ANSWERED, input_tokens=2 * needed_tokens + INSTRUCTIONS)
    return replace(
        check,
        seconds=answer.milliseconds / 1000,
        answer_form=model.capabilities.structure,
        streams=not listener.is_unstreamed,
        tools_problem=tools_problem,
        window=await find_window(name.model, vendor, access),
        needed_tokens=needed_tokens,
        question_usd=cost_usd(vendor.price_name, name.model, usage, base_url=access.base_url),
    )


def _describe_problem(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"the model did not answer within {MODEL_SECONDS:g} s"
    return " ".join(str(error).split()) or type(error).__name__


def _leaves_machine(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def _describe(check: ModelCheck) -> Iterator[str]:
    yield check.model
    yield from _field("tasks", "all" if len(check.tasks) == len(_TASKS) else ", ".join(check.tasks))
    yield from _field("address", f"{check.address}, {_LEAVES[check.leaves_machine]}")
    if check.problem:
        yield from _field("problem", check.problem)
        return
    yield from _field(
        "answers", f"answered a small prompt in {check.seconds:.1f} s, {_form(check)}"
    )
    yield from _field("streams", _STREAMS[check.streams])
    yield from _field("tools", _describe_tools(check))
    yield from _field("reads", _describe_window(check))
    price = "unknown" if check.question_usd is None else f"about {check.question_usd:.4f} USD"
    yield from _field("price", f"{price} for a usual question")


def _describe_tools(check: ModelCheck) -> str:
    if not check.tools_problem:
        return "calls them"
    needed = (
        "the setting WAY requires tool calls"
        if check.needs_tools
        else "WAY=search does not require tool calls"
    )
    return f"cannot be used ({needed}): {check.tools_problem}"


def _form(check: ModelCheck) -> str:
    return _FORMS.get(check.answer_form, check.answer_form)


def _describe_window(check: ModelCheck) -> str:
    if check.window is None:
        return (
            f"its context window is unknown; prompts of this installation have up to "
            f"{check.needed_tokens:,} "
            "tokens (MAX_CONTEXT_LENGTH)"
        )
    read = f"{check.window.tokens:,} tokens, {ORIGINS[check.window.origin]}"
    if not check.is_cut:
        return read
    advice = (
        f"; prompts of this installation have up to {check.needed_tokens:,}, and the model "
        f"does not see the rest"
    )
    if check.window.origin == "server_default" or check.window.tokens == OLLAMA_DEFAULT:
        return f"{read}{advice}: start Ollama with OLLAMA_CONTEXT_LENGTH=16384"
    return f"{read}{advice}: start the server with a larger context, or set MAX_CONTEXT_LENGTH"


def _field(name: str, text: str) -> Iterator[str]:
    first, *others = wrap(text, WIDTH - FIELD - 2) or [""]
    yield f"  {name:<{FIELD}}{first}"
    yield from (f"  {'':<{FIELD}}{line}" for line in others)


def _as_json(check: ModelCheck) -> dict[str, object]:
    price = None if check.question_usd is None else str(check.question_usd)
    return {
        **asdict(check),
        "question_usd": price,
        "is_cut": check.is_cut,
        "is_faulty": check.is_faulty,
    }
