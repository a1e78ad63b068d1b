"""Builds the manifest of the Slack app, so that nobody has to select its scopes by hand."""

from broker.values import Fields
from gateway.slack.events import EVENTS
from gateway.slack.transport import PATH
from gateway.slack.web_api import SCOPES

NAME = "Refdesk"


def manifest(url: str | None) -> Fields:
    """Return the manifest; `url` is the public address for events, None selects Socket Mode."""
    address: Fields = {} if url is None else {"request_url": f"{url.rstrip('/')}{PATH}"}
    return {
        "display_information": {"name": NAME},
        "features": {
            "app_home": {
                "home_tab_enabled": False,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": NAME, "always_online": True},
        },
        "oauth_config": {"scopes": {"bot": [*sorted({*SCOPES.values(), *EVENTS.values()})]}},
        "settings": {
            "event_subscriptions": {**address, "bot_events": [*sorted(EVENTS)]},
            "interactivity": {"is_enabled": True, **address},
            "org_deploy_enabled": False,
            "socket_mode_enabled": url is None,
            "token_rotation_enabled": False,
        },
    }
