"""The type `analysis`: compares, weighs and judges what the documents say."""

from swarm.workers.worker_type import WorkerType

ANALYSIS = WorkerType(
    name="analysis",
    description="compares and weighs what the documents say",
    tools=("search", "read_section", "read_document", "compare_documents", "definition_aligner"),
    instructions="Weigh what the passages say for and against. Name what they do not say.",
)
