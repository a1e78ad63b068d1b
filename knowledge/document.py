"""A document, and the chunks with which it is searched."""

from pydantic import BaseModel, Field

from knowledge.documents.page import PictureFile


class Chunk(BaseModel, frozen=True, extra="forbid"):
    """A passage that is small enough to cite. Code fences and tables are never split between two
    chunks.
    """

    chunk_id: str = Field(description="stable: document id, then '#', then its ordinal")
    ordinal: int = Field(ge=0)
    text: str
    heading_path: tuple[str, ...] = Field(default=(), description="outermost heading first")
    anchor: str | None = None
    links: tuple[tuple[str, str], ...] = Field(
        default=(), description="label and address of its links to the web; the text has the labels"
    )
    pictures: tuple[tuple[str, str], ...] = Field(
        default=(), description="id and caption of the pictures that stand in it"
    )


class Document(BaseModel, frozen=True, extra="forbid"):
    """One page of the documents, as read and described."""

    id: str
    source: str = Field(description="the file it was read from, relative to the ingested folder")
    title: str
    page: str = Field(description="names the page whatever its language: versions share it")
    crumbs: tuple[str, ...] = Field(
        default=(), description="from folders and title, outermost first"
    )
    description: str = ""
    content: str
    summary: str = ""
    keypoints: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    stated_keywords: tuple[str, ...] = Field(
        default=(), description="keywords that the source states, not those made by rule"
    )
    stated_text: str = Field(
        default="", description="description, summary and key points that the source states"
    )
    kind: str = Field(default="", description="changelog, index, or empty for other pages")
    chunks: tuple[Chunk, ...]
    language: str = "en"
    url: str | None = None
    content_hash: str = Field(description="of what was read and of how it was cut and described")
    anchors: tuple[str, ...] = ()
    stated_version: str = Field(default="", description="of what it describes, such as 1.4")
    path: str = Field(default="", description="its file, where the source is another label")
    groups_chosen: bool = Field(default=False, description="the owner chose the groups")
    groups: tuple[str, ...] = Field(
        default=(), description="groups that may read it; empty: everybody who uses the assistant"
    )
    files: tuple[PictureFile, ...] = Field(default=(), description="the pictures of its chunks")
