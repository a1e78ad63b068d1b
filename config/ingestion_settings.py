"""Settings of ingestion."""

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
