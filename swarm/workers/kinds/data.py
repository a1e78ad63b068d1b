"""The type `data`: reads whole documents for facts and criteria, one after the other."""

from swarm.workers.worker_type import WorkerType

DATA = WorkerType(
    name="data",
    description="reads whole documents and says which conditions each of them states",
    tools=("check_criteria", "get_document_info", "calculator"),
    instructions="Check every document for every condition, and quote the sentence that states it.",
    cues=("how many", "count", "which contracts", "which documents", "list all", "total"),
    rounds=1,
)
