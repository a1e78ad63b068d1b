"""The type `code`: reads code in documents as text; it writes no code that runs."""

from swarm.information.fields import RequiredInfoField
from swarm.workers.worker_type import WorkerType

CODE = WorkerType(
    name="code",
    description="finds and explains code, commands and settings in the documents",
    tools=("bm25_search", "search", "lookup"),
    instructions=(
        "Find the code, commands or settings that the question is about and quote them unchanged. "
        "Nothing is executed."
    ),
    required=(
        RequiredInfoField(
            name="programming_language",
            question="Which programming language or tool is it about?",
            cues=(
                "python", "javascript", "typescript", "java", "go", "rust", "bash", "shell", "sql",
                "curl", "docker", "kubernetes", "terraform", "ruby", "php", "c++",
            ),
        ),
    ),
    cues=("code", "snippet", "function", "command", "script", "api call", "configuration", "error"),
)  # fmt: skip
