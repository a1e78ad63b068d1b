"""Settings of reading documents."""

from pydantic import BaseModel, Field


class IngestionSettings(BaseModel):
    """What reading one file may take: more, and it is skipped. A part of `Settings`."""

    ingestion_file_seconds: float = Field(
        20.0,
        gt=0,
        le=3600,
        description="processor time to read one file while ingesting (by the clock three times "
        "that); of JSON lines one document, and all of a file this long for every megabyte",
    )
    ingestion_file_memory_mb: int = Field(
        512, ge=64, le=65_536, description="memory to read one file, in megabytes"
    )
