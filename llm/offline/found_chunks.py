"""Reduces sources to the chunks in them that the search found.

A model reads whole sections. Rules that compare words quote best from the chunks that the search
compared with the question: the text around them holds the question's words by chance.
"""

from collections.abc import Sequence

from llm.tasks.respond import PromptSource


def select_found(sources: Sequence[PromptSource]) -> tuple[PromptSource, ...]:
    """Return the found chunks as sources, best first, each under the number of its source.

    Sources without found chunks are returned as they are, if none has any.
    """
    if not any(source.found for source in sources):
        return tuple(sources)
    chunks = [
        (part.rank, source.model_copy(update={"text": source.text[part.start : part.end]}))
        for source in sources
        for part in source.found
    ]
    return tuple(chunk for _, chunk in sorted(chunks, key=lambda one: one[0]))
