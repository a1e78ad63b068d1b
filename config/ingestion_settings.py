"""Settings of ingestion and crawls."""

from pydantic import BaseModel, Field


class IngestionSettings(BaseModel):
    """The limits of reading one file; a file that exceeds them is skipped. Part of `Settings`."""

    ingestion_file_seconds: float = Field(
        20.0,
        gt=0,
        le=3600,
        description="maximum processor time for one file (wall time: three times as long); for "
        "JSON Lines: for one document, and per megabyte for the whole file",
    )
    ingestion_file_memory_mb: int = Field(
        512, ge=64, le=65_536, description="maximum memory for reading one file, in megabytes"
    )
    crawl_pages: int = Field(
        2000, ge=1, le=1_000_000, description="maximum number of pages that one crawl opens"
    )
    crawl_depth: int = Field(
        20,
        ge=0,
        le=1000,
        description="maximum number of links between the start of a crawl and a page",
    )
    crawl_seconds: float = Field(
        3600.0, gt=0, le=86_400, description="maximum duration of one crawl"
    )
    crawl_page_seconds: float = Field(
        30.0, gt=0, le=600, description="time limit for one page, until its last byte"
    )
    crawl_page_mb: int = Field(20, ge=1, le=64, description="maximum size of a page, in megabytes")
    crawl_total_mb: int = Field(
        1000,
        ge=1,
        le=1_000_000,
        description="maximum size of all pages that one crawl fetches, in megabytes",
    )
    crawl_delay_seconds: float = Field(
        0.5,
        ge=0,
        le=60,
        description="pause between two requests to a website; a longer one in its robots.txt "
        "takes precedence",
    )
    crawl_concurrency: int = Field(
        2, ge=1, le=8, description="maximum number of concurrent requests to one website"
    )
