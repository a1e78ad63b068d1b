"""Defines how admission bounds the open questions of a shard; `lua/admission.lua` measures them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """Admits enough questions to keep the workers busy, and few that wait.

    - `share`: how long questions may wait for free slots under overload, as a share of the time
      that they are processed. Accepted questions are answered later by about that share.
    - `at_least`: questions that are admitted whatever was measured; the number that one worker's
      smallest role processes concurrently is never too many.
    - `lanes`: roles with separate streams, outside the flow that is measured.
    """

    share: float = 0.12
    at_least: int = 16
    lanes: tuple[str, ...] = ()


NO_PACE = AdmissionPolicy(share=0.0)
"""Only the quota bounds a shard."""
