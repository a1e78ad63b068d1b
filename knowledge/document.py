"""A document, and the chunks with which it is searched."""

from pydantic import BaseModel, Field

from knowledge.documents.page import PictureFile


class Chunk(BaseModel, frozen=True, extra="forbid"):
    """A passage that is small enough to cite. Code fences and tables are never split between two
    chunks.
    """

    chunk_id: str = Field(
        description="stable id: the document id, '#', and the ordinal of the chunk"
    )
    ordinal: int = Field(ge=0)
    text: str
    heading_path: tuple[str, ...] = Field(
        default=(), description="headings above the chunk, outermost first"
    )
    anchor: str | None = None
    links: tuple[tuple[str, str], ...] = Field(
        default=(), description="labels and URLs of links to the web; the text contains the labels"
    )
    pictures: tuple[tuple[str, str], ...] = Field(
        default=(), description="ids and captions of the pictures in the chunk"
    )


class Document(BaseModel, frozen=True, extra="forbid"):
    """One page of the documents, as read and described."""

    id: str
    source: str = Field(description="file of the document, relative to the ingested folder")
    title: str
    page: str = Field(description="identifier of the page that all language versions share")
    crumbs: tuple[str, ...] = Field(
        default=(), description="breadcrumbs from folders and title, outermost first"
    )
    description: str = ""
    content: str
    summary: str = ""
    keypoints: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    stated_keywords: tuple[str, ...] = Field(
        default=(), description="keywords stated in the source, without generated keywords"
    )
    stated_text: str = Field(
        default="", description="description, summary and key points stated in the source"
    )
    kind: str = Field(default="", description="changelog, index, or empty for other pages")
    chunks: tuple[Chunk, ...]
    language: str = "en"
    url: str | None = None
    content_hash: str = Field(
        description="hash of the content and of how it was split and described"
    )
    anchors: tuple[str, ...] = ()
    stated_version: str = Field(
        default="", description="version of the described subject, such as 1.4"
    )
    path: str = Field(
        default="", description="file of the document, if `source` is a different label"
    )
    groups_chosen: bool = Field(default=False, description="whether the owner chose the groups")
    groups: tuple[str, ...] = Field(
        default=(),
        description="groups that may read the document; empty: all users of the assistant",
    )
    files: tuple[PictureFile, ...] = Field(
        default=(), description="pictures of the document's chunks"
    )
