"""The type `analysis`: compares, weighs and judges what the documents say."""

from swarm.information.fields import FieldType, RequiredInfoField
from swarm.workers.worker_type import WorkerType

ANALYSIS = WorkerType(
    name="analysis",
    description="compares and weighs what the documents say",
    tools=("graph_search", "search", "compare_documents", "definition_aligner"),
    instructions="Weigh what the passages say for and against. Name what they do not say.",
    required=(
        RequiredInfoField(
            name="aspect",
            question="Which aspect matters most?",
            type=FieldType.TEXT,
            required=False,
            cues=("cost", "price", "risk", "security", "privacy", "performance", "time", "effort"),
        ),
    ),
    cues=("compare", "difference", "versus", "why", "risk", "impact", "affected", "should"),
)
