"""Every regular expression of the product takes time in proportion to its text."""

import re

import pytest

from tests.patterns.attack_strings import attacks_on
from tests.patterns.collection import (
    PACKAGES,
    Pattern,
    Source,
    UnreadablePattern,
    find_patterns,
)
from tests.patterns.javascript import find_script_patterns
from tests.patterns.measurement import find_superlinear
from tests.patterns.record import select_new


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("package", PACKAGES)
def test_no_pattern_of_the_product_is_held_up_by_any_text(package: str) -> None:
    new = select_new(find_patterns(package))

    assert find_superlinear(new) == []


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_no_pattern_of_the_widget_is_held_up_by_any_text() -> None:
    patterns = find_script_patterns("gateway/widget")

    named = {pattern.place.rpartition("/")[2].partition(":")[0] for pattern in patterns}
    assert {"inline.js", "markdown.js", "turn.js", "links.js"} <= named
    assert find_superlinear(select_new(patterns)) == []


SLOW = (
    (r"(?:a|a)+b", "search"),  # doubles with every letter
    (r"\w*_\w*", "fullmatch"),
)
SLOW_IN_OTHER_WAYS = (
    (r"\A\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*\Z", "match"),  # newlines, three times over
    (r"\bshow\W+(?:\w+\W+){0,8}?your\W*(?:system)?\W*prompt", "search"),  # two gaps in a row
    (r"\[1(?:\u2020[^\]]*)?\s*\]", "sub"),  # every bracket looks for its end
    (r"(?:\s*\[\d+(?:,\d+)*(?:x[^\]]*)?\s*\])+\Z", "match"),  # no end in sight
    (r"[ \t]*\{#\w+\}", "search"),  # every space begins again
    (r"<!--.*?-->", "finditer"),
    (r"x(?=.*y)", "sub"),
    (r'import \{[^}]*\} from "x"', "sub"),  # a long beginning, again and again
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "method"),
    [*SLOW, *(pytest.param(*slow, marks=pytest.mark.long) for slow in SLOW_IN_OTHER_WAYS)],
)
def test_a_pattern_that_a_text_can_hold_up_is_found_and_named(source: str, method: str) -> None:
    linear = Pattern("good.py:1", r"\w+", 0, frozenset({"search"}))
    slow = Pattern("bad.py:7", source, re.DOTALL, frozenset({method}))

    findings = find_superlinear([linear, slow], silence_seconds=6)

    assert len(findings) == 1
    assert findings[0].startswith("bad.py:7: ")
    assert repr(source) in findings[0]


@pytest.mark.long
def test_a_pattern_that_never_ends_is_killed_and_named() -> None:
    source = "(?:" + "a?" * 40 + ")" + "a" * 40 + "+b"

    findings = find_superlinear(
        [Pattern("bad.py:7", source, 0, frozenset({"search"}))], silence_seconds=3
    )

    assert len(findings) == 1
    assert findings[0].startswith("bad.py:7: ")


def test_the_places_where_patterns_stand_are_found_by_themselves() -> None:
    results = {
        pattern.place.rpartition(":")[0]
        for package in ("citations", "llm")
        for pattern in find_patterns(package)
    }

    assert {
        "citations/claims.py",
        "citations/wording.py",
        "llm/injection.toml",
    } <= results
    assert {"gateway/api_keys.py"} <= {p.place.rpartition(":")[0] for p in find_patterns("gateway")}


def test_a_pattern_is_measured_by_the_methods_that_it_is_used_by() -> None:
    by_source = {pattern.source: pattern.methods for pattern in find_patterns("citations")}

    assert by_source[r"\s*(`{3,}|~{3,})"] == {"match"}


def test_a_pattern_is_measured_again_when_it_or_its_use_has_changed() -> None:
    known = find_patterns("citations")[0]
    flags = Pattern(known.place, known.source, known.flags ^ re.IGNORECASE, known.methods)
    methods = Pattern(known.place, known.source, known.flags, frozenset({"fullmatch", "subn"}))
    moved = Pattern("elsewhere.py:1", known.source, known.flags, known.methods)

    assert select_new([known, flags, methods, moved]) == [flags, methods]


def test_a_function_of_re_under_another_name_is_refused() -> None:
    with pytest.raises(UnreadablePattern, match="expected `import re`"):
        list(Source("from re import compile\ncompile('a+')\n", re).calls())


def test_a_pattern_that_is_made_of_a_local_name_is_read() -> None:
    text = 'def found(word):\n    own = rf"<{re.escape(word)}>+"\n    return re.search(own, "")\n'
    source = Source(f"import re\n{text}", re)

    [(call, argument)] = source.calls()

    assert source.evaluate(call, argument, "here").source == "<unknown>+"


def test_attacks_lead_to_each_repetition_with_what_it_accepts() -> None:
    texts = [attack.text(10) for attack in attacks_on(r"ab[cd]+e")]

    assert any(text.startswith("abccccc") for text in texts)
    assert any(text.startswith("abababab") for text in texts)
