"""Settings of ingestion and crawls."""

from pydantic import BaseModel, Field


class IngestionSettings(BaseModel):
    """The limits of reading one file; a file that exceeds them is skipped. Part of `Settings`."""

    ingestion_file_seconds: float = Field(
        20.0,
        gt=0,
        le=3600,
        description="processor time for one file (wall time: three times that); for JSON Lines, "
        "for one document, and for a whole file this time per megabyte",
    )
    ingestion_file_memory_mb: int = Field(
        512, ge=64, le=65_536, description="memory for one file, in megabytes"
    )
    crawl_pages: int = Field(
        2000, ge=1, le=1_000_000, description="the most pages of one website that are opened"
    )
    crawl_depth: int = Field(
        20, ge=0, le=1000, description="the most links between the start of a crawl and a page"
    )
    crawl_seconds: float = Field(
        3600.0, gt=0, le=86_400, description="the longest time of one crawl"
    )
    crawl_page_seconds: float = Field(
        30.0, gt=0, le=600, description="the longest time for one page, until its last byte"
    )
    crawl_page_mb: int = Field(20, ge=1, le=64, description="the largest page, in megabytes")
    crawl_total_mb: int = Field(
        1000, ge=1, le=1_000_000, description="the most megabytes that one crawl fetches"
    )
    crawl_delay_seconds: float = Field(
        0.5,
        ge=0,
        le=60,
        description="pause between two requests to a website; a longer one in its robots.txt holds",
    )
    crawl_concurrency: int = Field(
        2, ge=1, le=8, description="requests to one website that may be open at the same time"
    )
