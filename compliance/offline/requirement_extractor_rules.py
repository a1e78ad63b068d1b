"""Lists the requirements of units by the cues of duties, bans, permissions and definitions."""

from compliance.requirements.extraction import extract_requirements
from compliance.requirements.requirement import RuleUnit
from llm.tasks.specialists.requirement_extractor import Inputs, ListedRequirement, Output


def answer(inputs: Inputs) -> Output:
    """Return every sentence and item with a cue, in order."""
    units = (RuleUnit("", one.id, one.text, (one.heading,), one.language) for one in inputs.units)
    found = extract_requirements(units)
    return Output(
        target_law=inputs.target_law,
        checklist=tuple(
            ListedRequirement(
                id=one.id,
                requirement=one.text,
                source_section=one.place.unit_id,
                severity=one.severity,
                applicability=one.condition,
                kind=one.kind.value,
                addressee=one.addressee,
                lead=one.lead,
            )
            for one in found.requirements
        ),
    )
