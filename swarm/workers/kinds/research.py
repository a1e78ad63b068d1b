"""The type `research`: finds the passages that answer one question."""

from swarm.workers.worker_type import WorkerType

RESEARCH = WorkerType(
    name="research",
    description="finds the passages that answer one question",
    tools=("search", "expand_context", "read_section", "read_document", "lookup"),
    instructions="Find the passages that answer the question. Answer only from passages.",
)
