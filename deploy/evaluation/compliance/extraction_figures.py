"""The figures of requirements that are extracted from a law: no unit missed, every place right."""

import re
from pathlib import Path

from compliance.requirements.extraction import extract_requirements

from compliance.requirements.requirement import RuleUnit
from deploy.evaluation.compliance.review_figures import Figures, average
from deploy.evaluation.questions import UnknownFormatError, rows

_OBLIGATION = re.compile(
    r"\b(?:shall|must|should|may not|(?:is|are) prohibited|required to|obliged to"
    r"|muss|müssen|soll|sollen|darf nicht|dürfen nicht|verpflichtet)\b"
)
"""Words that oblige, apart from the cues of the product, which have many more."""


def is_rule_folder(folder: Path) -> bool:
    """Return whether a folder has the units of a law, and neither cases nor reviews."""
    others = ("cases.jsonl", "labels.jsonl", "questions.jsonl")
    has_units = (folder / "units.jsonl").is_file()
    return has_units and not any((folder / name).is_file() for name in others)


def measure_extraction(folder: Path) -> Figures:
    """Return the figures; raises `UnknownFormatError` for units without text."""
    units = [
        RuleUnit(
            document_id=str(row.get("doc", "")),
            unit_id=str(row.get("unit_id", "")),
            text=str(row.get("text", "")),
            heading_path=tuple(map(str, row.get("crumbs") or ())),
            language=str(row.get("language") or "en"),
        )
        for row in rows(folder / "units.jsonl")
    ]
    if not any(unit.text for unit in units):
        raise UnknownFormatError(f"expected units with a text in {folder}, found none")
    found = extract_requirements(units)
    texts = {unit.unit_id: unit.text for unit in units}
    with_requirement = {one.place.unit_id for one in found.requirements}
    obliging = [unit.unit_id for unit in units if _OBLIGATION.search(unit.text)]
    held = [
        texts[one.place.unit_id][one.place.start : one.place.end] == one.text
        for one in found.requirements
    ]
    return {
        "units": len(units),
        "units accounted for": len({one.unit_id for one in found.units} & texts.keys()),
        "requirements": len(found.requirements),
        "units with an obligation": len(obliging),
        "of these with a requirement": average([one in with_requirement for one in obliging]),
        "requirements that their place holds": average(held),
    }
