"""Says what a dead Redis may take with it: what `appendfsync everysec` had not written yet.

Redis comes back as it was a moment before. A message whose acceptance is gone gets its one answer
from the client, at its deadline: lost, and reported. What was done in that moment is done again. A
message that was open, or ended, in that moment is *exposed*; to all others every promise holds, and
to these too: one reply to the client, no step that the table does not have, no memory twice.
"""

from collections import Counter
from collections.abc import Sequence

from tests.faults.finding import Evidence, Finding

UNWRITTEN_SECONDS = 3.0
"""At most a second is lost, and up to two more where the disk is slow."""
EXCUSED = {"ends", "starts", "bills", "late"}


def excusing(
    found: Sequence[Finding], evidence: Evidence, outages: Sequence[float]
) -> tuple[list[Finding], dict[str, int]]:
    """Return the findings that no outage excuses, and counts of what outages did."""
    if not outages:
        return list(found), {}
    exposed = _find_exposed(evidence, outages)
    lost = {name for name in exposed if not evidence.journals.get(name)} - evidence.forgotten()
    counts: Counter[str] = Counter()
    counts["exposed to an outage"] = len(exposed)
    counts["lost by an outage and reported to its client"] = len(lost)
    left: list[Finding] = []
    for finding in found:
        if finding.about in exposed and finding.part in EXCUSED:
            counts[f"excused by an outage: {finding.part}"] += 1
        else:
            left.append(finding)
    return left, dict(counts)


def _find_exposed(evidence: Evidence, outages: Sequence[float]) -> set[str]:
    reported = {line["name"]: line.at for line in evidence.lines("reported")}
    return {
        line["name"]
        for line in evidence.lines("accepted")
        if any(
            line.at <= at and reported.get(line["name"], at) >= at - UNWRITTEN_SECONDS
            for at in outages
        )
    }
