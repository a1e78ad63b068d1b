"""Every agent keeps to its declaration on the roster, and to the payload catalogue."""

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from agents.agent import Agent, AgentSettings, AgentTier
from agents.review.specialist import Toolbox
from agents.roster import AGENTS as SPECS
from agents.roster import AgentSpec
from config.settings import Settings
from deploy.assembly.role_slots import INSTANCES
from deploy.generate import client_contract
from envelope.payload import ATTRIBUTES
from envelope.role import INGESTING, Role
from envelope.specialists import FULL_REVIEW, PHASES, SpecialistName
from llm.port import Task
from manager.state import MANAGER_READS, MANAGER_WRITES

NOT_AGENTS = {Role.MANAGER, *INGESTING}
AGENTS = tuple(spec.load_class() for spec in SPECS)


def test_every_role_but_the_managers_has_one_agent() -> None:
    assert {agent.role for agent in AGENTS} == set(Role) - NOT_AGENTS
    assert [agent.role for agent in AGENTS] == [spec.role for spec in SPECS]
    assert len({agent.role for agent in AGENTS}) == len(AGENTS)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.role.value)
def test_an_agent_asks_models_for_the_task_that_it_declares(spec: AgentSpec) -> None:
    module = sys.modules[spec.load_class().__module__]
    tasks = {task.name for task in vars(module).values() if isinstance(task, Task)}

    assert spec.model_task in tasks if tasks else spec.model_task is None


def test_the_roster_names_tier_and_role_of_every_specialist_and_its_phase() -> None:
    team = {spec.role.value: spec for spec in SPECS if spec.tier is AgentTier.SPECIALIST}

    assert set(team) == set(FULL_REVIEW)
    assert set(PHASES) == set(SpecialistName)
    assert all(agent_spec.agent_role is not None for agent_spec in team.values())
    planners = {spec.role for spec in SPECS if spec.tier is AgentTier.ORCHESTRATOR}
    assert planners == {Role.TRIAGE, Role.SYNTHESIS}
    assert all(spec.agent_role is None for spec in SPECS if spec.tier is AgentTier.WORKER)


SETTINGS = {
    name: get_type_hints(member.fget)["return"]
    for name, member in vars(AgentSettings).items()
    if isinstance(member, property)
}


def find_kind(name: str) -> object:
    """Return the type of a setting, or of what settings derive from others."""
    if name in Settings.model_fields:
        return Settings.model_fields[name].annotation
    derived = getattr(Settings, name, None)
    return get_type_hints(derived.fget)["return"] if isinstance(derived, property) else None


@pytest.mark.parametrize("name", SETTINGS)
def test_an_agent_needs_only_settings_that_exist(name: str) -> None:
    assert find_kind(name) == SETTINGS[name]


def test_every_setting_that_agents_declare_is_read_by_one() -> None:
    sources = "".join(
        inspect.getsource(sys.modules[agent.__module__]) for agent in (*AGENTS, Agent, Toolbox)
    )

    assert {name for name in SETTINGS if not re.search(rf"ettings\.{name}\b", sources)} == set()


def test_the_declarations_are_read_without_importing_an_agent() -> None:
    program = "import sys, agents.roster; print(*sorted(sys.modules))"

    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    loaded = set(run.stdout.split())
    assert {name for name in loaded if name.startswith("agents.")} == {
        "agents.agent",
        "agents.roster",
    }
    assert not {"llm", "knowledge"} & loaded


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.role.value)
def test_an_agent_reads_only_what_the_catalogue_gives_it(agent: type[Agent[Any, Any]]) -> None:
    for name, field in agent.reads.model_fields.items():
        assert name in ATTRIBUTES, f"{name} is not in the catalogue"
        assert field.annotation == ATTRIBUTES[name].type, name


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.role.value)
def test_an_agent_writes_only_what_the_catalogue_lets_it(agent: type[Agent[Any, Any]]) -> None:
    for name, field in agent.writes.model_fields.items():
        assert name in ATTRIBUTES, f"{name} is not in the catalogue"
        assert field.annotation == ATTRIBUTES[name].type, name


def test_every_attribute_is_used() -> None:
    used = (MANAGER_READS | MANAGER_WRITES).union(*(spec.reads | spec.writes for spec in SPECS))

    assert ATTRIBUTES.keys() <= used


def test_an_agent_differs_from_the_clients_table_only_with_a_reason() -> None:
    exceeding = {
        (client_contract.find_reason(agent, name).why, name)
        for agent in client_contract.AGENTS
        for side in client_contract.SIDES
        for name in client_contract.list_additions(agent, side)
    }

    stated = {
        (reason.why, name) for reason in client_contract.REASONS for name in reason.attributes
    }
    assert stated - exceeding == set(), "reasons that nothing needs any more"
    assert client_contract.list_omissions() == set(client_contract.LEFT_OUT)


def test_an_agent_that_waits_for_models_or_the_index_has_several_instances_by_default() -> None:
    for spec in SPECS:
        waits = spec.model_task is not None or spec.needs_index
        assert (spec.instances >= 2) == waits, spec.role
        assert INSTANCES[spec.role.value] == spec.instances
    assert INSTANCES[Role.MANAGER.value] == 1


def list_imports(module: str) -> set[str]:
    """Return the modules of `agents` that a module imports, itself or through others of them."""
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        source = Path(import_module(waiting.pop()).__file__ or "").read_text("utf-8")
        modules = {
            node.module
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("agents.")
        }
        waiting += [item for item in modules if item is not None and item not in reached]
        reached |= {item for item in modules if item is not None}
    return reached


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.role.value)
def test_an_agent_imports_no_other_agent(agent: type[Agent[Any, Any]]) -> None:
    others = {item.__module__ for item in AGENTS} - {agent.__module__}

    imported = list_imports(agent.__module__)

    assert "agents.agent" in imported
    assert imported & others == set()
