"""All tasks of models: inputs, output and parameters of each.

A task has the name of its prompt in `config/prompts/`, and of its constant in lower case.
"""

from typing import Any

from llm.port import Task
from llm.tasks import descriptions, question, review, search, swarm, tool_loop

TASKS: dict[str, Task[Any, Any]] = {
    value.name: value
    for module in (question, search, tool_loop, review, swarm, descriptions)
    for value in vars(module).values()
    if isinstance(value, Task)
}
"""All tasks by their names."""
