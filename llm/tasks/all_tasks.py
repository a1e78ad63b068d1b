"""All model tasks, with the inputs, output, and parameters of each.

A task has the same name as its prompt in `config/prompts/`, which is the lower-case name of its
constant.
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
"""All tasks by name."""
