"""The type `code`: reads code in documents as text; it writes no code that runs."""

from swarm.workers.worker_type import WorkerType

CODE = WorkerType(
    name="code",
    description="finds and explains code, commands and settings in the documents",
    tools=("search", "read_section", "read_document", "lookup"),
    instructions=(
        "Find the code, commands or settings that the question is about and quote them unchanged. "
        "Nothing is executed."
    ),
)
