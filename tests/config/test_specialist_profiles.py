"""The specialists have the tools, temperatures and lengths of the client's documents."""

from collections.abc import Collection

import pytest

from config.way_settings import load_profiles


@pytest.mark.parametrize(
    ("name", "temperature", "tokens", "tools"),
    [
        (
            "extractor", 0.3, 4096,
            {"search", "hierarchical_search", "expand_context", "get_document_info"},
        ),
        ("classifier", 0.2, 2048, {"search", "get_document_info"}),
        (
            "requirement_extractor", 0.2, 4096,
            {"hierarchical_search", "graph_search", "definition_aligner"},
        ),
        ("compliance", 0.2, 4096, {"graph_search", "assess_confidence"}),
        ("risk_verifier", 0.3, 4096, {"similarity_search", "compare_documents"}),
        ("citation_auditor", 0.2, 2048, {"search", "get_document_info"}),
        ("gap_synthesizer", 0.3, 4096, {"hierarchical_search", "graph_search"}),
    ],
)  # fmt: skip
def test_a_specialist_has_the_tools_and_limits_that_the_client_names(
    name: str, temperature: float, tokens: int, tools: Collection[str]
) -> None:
    profile = load_profiles()[name]

    assert (profile.temperature, set(profile.tools)) == (temperature, tools)
    assert profile.max_tokens >= tokens
    assert profile.max_iterations == (15 if name == "requirement_extractor" else 10)
    assert (profile.timeout_seconds, profile.retry_count) == (30.0, 2)
