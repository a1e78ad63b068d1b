"""Settings of telemetry: where traces, metrics and errors are sent."""

from pydantic import BaseModel, Field, SecretStr, field_validator


class TelemetrySettings(BaseModel):
    """OpenTelemetry and the tracker of errors; a part of `Settings`."""

    otel_exporter_otlp_endpoint: str | None = Field(
        None,
        description="address of a receiver of OTLP over HTTP, such as `http://collector:4318`, to "
        "which traces and metrics are sent (needs the extra `opentelemetry`); unset: nothing "
        "is sent. Further variables of OpenTelemetry, such as `OTEL_TRACES_SAMPLER`, apply from "
        "the environment",
    )
    otel_exporter_otlp_headers: SecretStr | None = Field(
        None, description="headers for that receiver: `name=value`, separated by commas"
    )
    otel_service_name: str = Field(
        "refdesk", min_length=1, description="name of this installation in traces and metrics"
    )
    telemetry_content: bool = Field(
        False,
        description="include questions and answers in traces; they then leave this installation, "
        "and `refdesk forget` does not erase them at the receiver",
    )
    sentry_dsn: SecretStr | None = Field(
        None,
        description="address (DSN) of a Sentry project, to which errors are reported without the "
        "text of questions and documents (needs the extra `sentry`)",
    )

    @field_validator("otel_exporter_otlp_endpoint", "sentry_dsn", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("otel_exporter_otlp_endpoint")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError(f"expected http:// or https:// and a receiver, found {value!r}")
        return value

    def otlp_headers(self) -> dict[str, str]:
        """Return the headers for the receiver."""
        stated = self.otel_exporter_otlp_headers
        pairs = [] if stated is None else stated.get_secret_value().split(",")
        split = (pair.partition("=") for pair in pairs if "=" in pair)
        return {name.strip(): value.strip() for name, _, value in split}
