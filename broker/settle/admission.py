"""How the door bounds what a shard lets in; `lua/admission.lua` says how it is measured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """Lets in as many questions as keep the workers busy, and few that wait.

    `share`: how long questions may wait for free places under overload, as a share of the time
    that is worked on them; about that much later is answered what is let in. `at_least`: questions
    that are let in at once whatever was measured; as many as one worker's smallest role works on is
    never too many. `lanes`: roles with streams of their own, beside the flow that is measured.
    """

    share: float = 0.12
    at_least: int = 16
    lanes: tuple[str, ...] = ()


NO_PACE = AdmissionPolicy(share=0.0)
"""The quota alone bounds a shard."""
