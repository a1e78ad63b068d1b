"""Breaks the rules of the scripts on purpose, one at a time: the simulation must notice each.

A rule of the Lua scripts is a comment `-- rule: <name>` at the end of each line that keeps it. A
mutation names the rule and how it is broken. No mutation repeats the text of a script, so that a
name can change and a line can be reformatted; only the form of the line counts: a statement, a
condition, a comparison. A mutation changes the text that the simulated Redis receives; the files
stay as they are.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.exploration import BrokenPromiseError, interleave
from tests.simulation.scenarios import BRANCHES, WATCHES
from tests.simulation.simulated_redis import ScriptFailedError

ORDERS = 20
"""How many interleavings of a scenario are tried."""
MARK = " -- rule: "
"""Separates the code of a line from the name of the rule that the line keeps."""

Break = Callable[[str], str]
"""Returns a broken line of Lua for a line that keeps a rule."""


def remove(line: str) -> str:
    """Return nothing in place of a statement."""
    return "" if not line.endswith((" then", " do")) else line


def repeat(line: str) -> str:
    """Return a statement twice."""
    return f"{line}\n{line}"


def never(line: str) -> str:
    """Return a condition that is always false."""
    return re.sub(r"^( *if ).+( then)$", r"\1false\2", line)


def drop_first_operand(line: str) -> str:
    """Return a condition without the first of its alternatives."""
    return re.sub(r"^( *if )\S+ or ", r"\1", line)


@dataclass(frozen=True, slots=True)
class Give:
    """Returns or assigns a constant in place of an expression."""

    constant: str

    def __call__(self, line: str) -> str:
        head, separator, _ = line.partition(" = ")
        if separator and not line.lstrip().startswith("return "):
            return f"{head} = {self.constant}"
        return re.sub(r"^( *return ).+$", rf"\g<1>{self.constant}", line)


@dataclass(frozen=True, slots=True)
class Compare:
    """Replaces the one operator of a comparison."""

    operator: str
    by: str

    def __call__(self, line: str) -> str:
        parts = line.split(f" {self.operator} ")
        return f" {self.by} ".join(parts) if len(parts) == 2 else line


@dataclass(frozen=True, slots=True)
class Swap:
    """Replaces a name by another one."""

    name: str
    by: str

    def __call__(self, line: str) -> str:
        return line.replace(self.name, self.by)


@dataclass(frozen=True, slots=True)
class Mutation:
    """Breaks one rule of the scripts; `breaks` says in words what is broken then.

    `seed` is of a drawn scenario that shows it; `python -m tests.simulation.mutations` finds
    another one if the scenarios have changed.
    """

    breaks: str
    rule: str
    how: Break
    seed: int | str

    def __call__(self, text: str) -> str:
        """Return a script with this rule broken; raises `ValueError` where that changes nothing."""
        return "\n".join(self._broken(line) for line in text.split("\n"))

    def _broken(self, line: str) -> str:
        code, _, rule = line.partition(MARK)
        if rule != self.rule:
            return line
        broken = self.how(code)
        if broken == code:
            raise ValueError(f"expected a line that {self.how} breaks, found {code.strip()!r}")
        return broken

    def is_noticed(self, seed: int | str) -> bool:
        """Return whether the scenario of this seed shows it; a script that fails shows nothing."""
        return is_noticed(self, seed)


def is_noticed(edit: Callable[[str], str], seed: int | str) -> bool:
    """Return whether a promise breaks in the scenario of this seed with edited scripts.

    A script that fails is an error of the edit, and is raised: it would be noticed anyway.
    """
    try:
        interleave(str(seed), ORDERS, edit, per_scenario=ORDERS)
    except BrokenPromiseError as error:
        if isinstance(error.__cause__, ScriptFailedError):
            raise error.__cause__ from error
        return True
    return False


def rules_in(text: str) -> frozenset[str]:
    """Return the names of the rules that a script keeps."""
    return frozenset(line.partition(MARK)[2] for line in text.split("\n") if MARK in line)


MUTATIONS = (
    Mutation("ownership: everybody holds the entry", "only-the-holder-settles", Give("true"), 2),
    Mutation("settle: the entry stays on its stream", "settled-entry-leaves-stream", remove, 0),
    Mutation("settle: the entry stays pending", "settled-entry-is-acknowledged", remove, 0),
    Mutation("settle: a closed question goes on", "closed-question-stays-closed",
             drop_first_operand, 0),
    Mutation("forward: sent twice", "each-send-adds-one-entry", repeat, 0),
    Mutation("forward: the base frame of a part is not kept", "base-frame-is-kept", remove, 9),
    Mutation("close: the base frames of parts stay", "base-frames-end-with-question", remove, 9),
    Mutation("retry: a delay goes past the deadline", "retry-comes-by-the-deadline", remove, 19),
    Mutation("retry: sent for a closed question", "closed-question-is-not-retried",
             drop_first_operand, 4),
    Mutation("retry: stays parked", "sent-retry-is-unparked", remove, 3),
    Mutation("order: the next message is not released", "next-message-of-conversation-starts",
             never, 8),
    Mutation("submit: the open questions are not counted down", "closed-question-leaves-quota",
             never, 0),
    Mutation("submit: the quota lets one more in", "quota-bounds-open-questions",
             Compare(">=", ">"), 16),
    Mutation("submit: a duplicate is let in again", "message-is-accepted-once", never, 0),
    Mutation("submit: an older entry is delivered as the submitted one",
             "taken-entry-is-named-truly", never, 0),
    Mutation("submit: the frame of an entry that is taken at once is not kept",
             "frame-taken-at-submission-is-kept", remove, 15),
    Mutation("recover: entries that arrived are handed back as well",
             "known-entries-stay-with-consumer", never, 22),
    Mutation("recover: entries that never arrived are gone", "unknown-entries-return-to-stream",
             Give("nil"), 16),
    Mutation("deadline: nothing is overdue", "due-time-is-kept", Compare("<=", "< -1000 +"), 3),
    Mutation("deadline: the alarm does not report it", "earliest-due-time-wakes-timer", never, 0),
    Mutation("poison: started once more", "starts-are-bounded", Compare(">=", ">"), 46),
    Mutation("poison: starts are forgotten when an entry is handed back", "starts-survive-return",
             remove, 2),
    Mutation("sweep: a renewed lease is taken", "renewed-lease-is-respected",
             Compare("<", "< 0.5 *"), 30),
    Mutation("sweep: an entry is given back and keeps its place", "returned-entry-leaves-its-place",
             remove, 0),
    Mutation("forget: the journal stays", "forgotten-journal-is-deleted", remove, 1),
    Mutation("renew: the lease is not kept", "renewal-extends-lease", remove, 11),
    Mutation("close: no time to live", "result-list-expires", remove, 0),
    Mutation("branches: a branch of an ended branch goes on", "branch-ends-with-its-join",
             never, "b35"),
    Mutation("branches: a join goes on and stays", "join-goes-on-once", remove, "b0"),
    Mutation("branches: a branch that returned is open", "branch-returns-once", remove, "b11"),
    Mutation("branches: a result is lost", "result-is-kept", remove, "b0"),
    Mutation("branches: one success more than enough is awaited", "join-goes-on-when-met",
             Compare(">=", ">"), "b0"),
    Mutation("branches: a branch that waits never begins", "next-branch-begins", remove, "b12"),
    Mutation("branches: a look that finds nothing ends the work", "watch-is-not-waited-for",
             never, "bw4"),
    Mutation("submit: a message that waits is not shown", "waiting-message-is-shown",
             Swap("frame", "list"), "bw1"),
    Mutation("close: a question that has ended watches on", "watch-ends-with-question",
             remove, "bw1"),
    Mutation("scatter: a join outlives its question", "join-ends-by-the-deadline",
             Give("whole(now_ms() + scatter.duration_ms)"), "b0"),
    Mutation("scatter: one branch fewer begins", "branches-at-once-are-bounded",
             Compare("<=", "<"), "b0"),
    Mutation("bury: a branch ends its question", "branch-ends-no-question", never, "b23"),
    Mutation("settle: a branch that has ended is reported as settled",
             "ended-branch-settles-nothing", Give("1"), "b0"),
    Mutation("renew: the lease of a branch that has ended is kept", "ended-branch-is-not-renewed",
             Give("false"), "b11"),
)  # fmt: skip


def main() -> None:
    """Print for each mutation the first seed that shows it."""
    for mutation in MUTATIONS:
        kinds = ("", BRANCHES, WATCHES)
        seeds = (f"{kind}{number}" for number in range(400) for kind in kinds)
        seed = next((seed for seed in seeds if mutation.is_noticed(seed)), None)
        sys.stdout.write(f"{seed}  {mutation.breaks}\n")


if __name__ == "__main__":
    main()
