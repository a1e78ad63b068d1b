"""Finds pages of the newest version that were withdrawn, by what an earlier version of them says.

A search leaves earlier versions out, and the page of the newest one has only a notice, such as
"Withdrawn: incorporated into SC-7(5)", without the words that are asked for.
"""

import re
from collections.abc import Sequence

from knowledge.documents.stated_version import find_numbers
from knowledge.library.library import Library
from knowledge.library.passage_graph import ConnectedPassage, PassageGraph
from knowledge.port import Searcher, SearchRequest

_NOTICE = re.compile(
    r"(?:withdrawn|repealed|deleted|removed|superseded|deprecated|moved|replaced)\W{1,3}"
    r"(?:and )?(?:incorporated|moved|merged|replaced|see|into|to|by)\b",
    re.IGNORECASE,
)
_NOTICE_CHARACTERS = 400
_QUERY_CHARACTERS = 300


def is_notice(text: str) -> bool:
    """Return whether a document says at its beginning that its content is in another one now."""
    return _NOTICE.search(text[:_NOTICE_CHARACTERS]) is not None


async def find_withdrawn(
    searcher: Searcher,
    library: Library,
    graph: PassageGraph,
    query: str,
    language: str,
    groups: Sequence[str],
) -> ConnectedPassage | None:
    """Return the notice in the newest version of the page of the one before it that fits best.

    None: there are no two versions, the query names one, or that page was not withdrawn.
    """
    versions = sorted(await library.list_versions(groups), key=find_numbers)
    if len(versions) < 2 or (await library.find_named(query, groups)).versions:
        return None
    before, newest = versions[-2:]
    number = ".".join(map(str, find_numbers(before)))
    text = f"{query[:_QUERY_CHARACTERS]} version {number}"
    request = SearchRequest(
        question=text, text=text, language=language or None, limit=1, groups=tuple(groups)
    )
    found = await searcher.search(request)
    ids = [one.document_id for one in found.hits[:1] if one.document_id.count(before) == 1]
    documents = await graph.read_documents([one.replace(before, newest) for one in ids])
    chunks = [f"{name}#0" for name in documents]
    passages = await graph.read_passages(chunks, documents)
    return next((one for one in passages.values() if is_notice(one.chunk.text)), None)
