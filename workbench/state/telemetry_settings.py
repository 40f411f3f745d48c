"""The settings of what an OpenTelemetry collector is told; see `workbench.services.telemetry`."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

from workbench.state.notification_settings import HEADER


class TelemetrySettings(BaseSettings):
    """The settings of telemetry. Those that send something count from a project's file only if it is trusted."""

    telemetry_endpoint: str = Field(
        "",
        max_length=2_000,
        description="The address of an OpenTelemetry collector that takes OTLP over HTTP, such as "
        "`http://127.0.0.1:4318`; empty: that of OTEL_EXPORTER_OTLP_ENDPOINT, or none.",
    )
    telemetry_header: str = Field(
        "",
        max_length=2_000,
        description="A header for the collector whose value is a reference to a secret, such as "
        "`Authorization: Bearer env://COLLECTOR_TOKEN`; empty: those of OTEL_EXPORTER_OTLP_HEADERS.",
    )
    telemetry_content: bool = Field(
        False,
        description="Tell the collector titles of tasks, and arguments and results of tools, too, without secrets.",
    )
    telemetry_seconds: float = Field(
        2.0, gt=0, description="How often the collector is told what is new; of sums at most every 15 seconds."
    )
    telemetry_answer_seconds: float = Field(
        10.0, gt=0, le=600, description="How long the collector may take to answer."
    )
    max_telemetry_spans: int = Field(500, ge=1, le=10_000, description="Most spans of one request to the collector.")

    agent_telemetry: bool = Field(
        False,
        description="Have Claude Code, Codex and Gemini CLI tell this server by OpenTelemetry what they ask models, "
        "for the ledger and the transcript, where the gateway does not see it.",
    )
    max_telemetry_bytes: int = Field(
        8_388_608, ge=1_024, description="Largest request by which a program tells this server by OpenTelemetry."
    )

    @field_validator("telemetry_endpoint")
    @classmethod
    def _require_address(cls, value: str) -> str:
        if value:
            require_collector(value)
        return value

    @field_validator("telemetry_header")
    @classmethod
    def _require_collectors_reference(cls, value: str) -> str:
        if value and not HEADER.fullmatch(value):
            raise ValueError(
                "it should be a name and a reference to a secret: `Authorization: Bearer env://COLLECTOR_TOKEN`"
            )
        return value


def require_collector(value: str) -> None:
    """Refuse what is no address of a collector.

    Raises:
        ValueError: says why, without the address.
    """
    address = urlsplit(value)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise ValueError("it should be an http or https address")
    if address.username or address.password or address.query or address.fragment:
        raise ValueError("it should have no password, query or fragment: secrets belong into a header")
