from citations.sources import choose_alternatives
from envelope.conversation import ClarificationOption

MOST = 4


def place(label: str, *crumbs: str) -> ClarificationOption:
    return ClarificationOption(label=label, crumbs=crumbs)


def labels(*places: ClarificationOption) -> list[str]:
    return [option.label for option in choose_alternatives(places, MOST)]


def test_places_of_the_same_name_are_worded_by_what_distinguishes_them() -> None:
    linux = place("Installation", "Guides", "Linux", "Installation")
    mac = place("Installation", "Guides", "Mac", "Installation")

    assert labels(linux, mac, place("API")) == ["Installation (Linux)", "Installation (Mac)", "API"]


def test_a_place_is_not_an_alternative_to_a_place_below_it() -> None:
    above = place("Getting started", "Getting started")
    account = place("Set up your account", "Getting started", "Set up your account")

    assert labels(above, account, place("Webhooks")) == ["Set up your account", "Webhooks"]


def test_a_place_and_the_only_place_below_it_stay_a_choice() -> None:
    above = place("Webhooks", "Webhooks")
    below = place("Set up a webhook", "Webhooks", "Set up a webhook")

    assert labels(above, below) == ["Webhooks", "Set up a webhook"]


def test_a_single_place_is_not_a_choice() -> None:
    assert labels(place("API"), place("API")) == []


def test_no_more_places_are_offered_than_asked_for() -> None:
    assert len(labels(*(place(f"Page {number}") for number in range(9)))) == MOST


def test_names_of_places_are_plain_lines() -> None:
    [first, _] = choose_alternatives((place("A\n1. fake", "x\ny"), place("B")), MOST)

    assert "\n" not in first.label + "".join(first.crumbs)
