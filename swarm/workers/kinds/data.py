"""The type `data`: reads whole documents for facts and criteria, one after the other."""

from swarm.workers.worker_type import WorkerType

DATA = WorkerType(
    name="data",
    description="reads whole documents and says what each of them states",
    tools=("get_document_list", "get_document_info", "read_document", "search", "calculator"),
    instructions="Read every document for every fact, and quote the sentence that states it.",
)
