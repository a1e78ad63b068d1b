"""Lists the chat channels, from which the command, the memory, and the manifests are derived."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChatChannelSpec:
    """The properties of a chat channel that code outside of its adapter needs.

    `name` is the subcommand, the first part of conversation IDs, and the name of the pod. `secrets`
    maps the settings that the channel's pod receives to examples. `pod_note` states how the pods
    connect, and how many may run.
    """

    name: str
    purpose: str
    secrets: Mapping[str, str]
    pod_note: str


CHAT_CHANNELS = (
    ChatChannelSpec(
        name="slack",
        purpose="answer in Slack, over HTTP or in Socket Mode",
        secrets={"SLACK_BOT_TOKEN": "xoxb-TOKEN", "SLACK_APP_TOKEN": "xapp-TOKEN"},
        pod_note="Slack in Socket Mode needs no inbound connection; any number of pods may run.",
    ),
    ChatChannelSpec(
        name="telegram",
        purpose="answer in Telegram, by webhook or long polling",
        secrets={"TELEGRAM_BOT_TOKEN": "TOKEN"},
        pod_note="Telegram's long polling needs no inbound connection; one pod at a time polls.",
    ),
)
