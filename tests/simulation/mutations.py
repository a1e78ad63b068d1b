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
    Mutation(
        "ownership: everybody holds the entry",
        rule="only-the-holder-settles",
        how=Give("true"),
        seed=2,
    ),
    Mutation(
        "settle: the entry stays on its stream",
        rule="settled-entry-leaves-stream",
        how=remove,
        seed=0,
    ),
    Mutation(
        "settle: the entry stays pending",
        rule="settled-entry-is-acknowledged",
        how=remove,
        seed=0,
    ),
    Mutation(
        "settle: a closed question goes on",
        rule="closed-question-stays-closed",
        how=drop_first_operand,
        seed=0,
    ),
    Mutation(
        "forward: sent twice",
        rule="each-send-adds-one-entry",
        how=repeat,
        seed=0,
    ),
    Mutation(
        "forward: the base frame of a part is not kept",
        rule="base-frame-is-kept",
        how=remove,
        seed=9,
    ),
    Mutation(
        "close: the base frames of parts stay",
        rule="base-frames-end-with-question",
        how=remove,
        seed=9,
    ),
    Mutation(
        "retry: a delay goes past the deadline",
        rule="retry-comes-by-the-deadline",
        how=remove,
        seed=19,
    ),
    Mutation(
        "retry: sent for a closed question",
        rule="closed-question-is-not-retried",
        how=drop_first_operand,
        seed=4,
    ),
    Mutation(
        "retry: stays parked",
        rule="sent-retry-is-unparked",
        how=remove,
        seed=3,
    ),
    Mutation(
        "order: the next message is not released",
        rule="next-message-of-conversation-starts",
        how=never,
        seed=8,
    ),
    Mutation(
        "submit: the open questions are not counted down",
        rule="closed-question-leaves-quota",
        how=never,
        seed=0,
    ),
    Mutation(
        "submit: the quota lets one more in",
        rule="quota-bounds-open-questions",
        how=Compare(">=", ">"),
        seed=16,
    ),
    Mutation(
        "submit: a duplicate is let in again",
        rule="message-is-accepted-once",
        how=never,
        seed=0,
    ),
    Mutation(
        "submit: an older entry is delivered as the submitted one",
        rule="taken-entry-is-named-truly",
        how=never,
        seed=0,
    ),
    Mutation(
        "submit: the frame of an entry that is taken at once is not kept",
        rule="frame-taken-at-submission-is-kept",
        how=remove,
        seed=15,
    ),
    Mutation(
        "recover: entries that arrived are handed back as well",
        rule="known-entries-stay-with-consumer",
        how=never,
        seed=22,
    ),
    Mutation(
        "recover: entries that never arrived are gone",
        rule="unknown-entries-return-to-stream",
        how=Give("nil"),
        seed=16,
    ),
    Mutation(
        "deadline: nothing is overdue",
        rule="due-time-is-kept",
        how=Compare("<=", "< -1000 +"),
        seed=3,
    ),
    Mutation(
        "deadline: the alarm does not report it",
        rule="earliest-due-time-wakes-timer",
        how=never,
        seed=0,
    ),
    Mutation(
        "poison: started once more",
        rule="starts-are-bounded",
        how=Compare(">=", ">"),
        seed=46,
    ),
    Mutation(
        "poison: starts are forgotten when an entry is handed back",
        rule="starts-survive-return",
        how=remove,
        seed=2,
    ),
    Mutation(
        "sweep: a renewed lease is taken",
        rule="renewed-lease-is-respected",
        how=Compare("<", "< 0.5 *"),
        seed=30,
    ),
    Mutation(
        "sweep: an entry is given back and keeps its place",
        rule="returned-entry-leaves-its-place",
        how=remove,
        seed=0,
    ),
    Mutation(
        "forget: the journal stays",
        rule="forgotten-journal-is-deleted",
        how=remove,
        seed=1,
    ),
    Mutation(
        "renew: the lease is not kept",
        rule="renewal-extends-lease",
        how=remove,
        seed=11,
    ),
    Mutation(
        "close: no time to live",
        rule="result-list-expires",
        how=remove,
        seed=0,
    ),
    Mutation(
        "branches: a branch of an ended branch goes on",
        rule="branch-ends-with-its-join",
        how=never,
        seed="b35",
    ),
    Mutation(
        "branches: a join goes on and stays",
        rule="join-goes-on-once",
        how=remove,
        seed="b0",
    ),
    Mutation(
        "branches: a branch that returned is open",
        rule="branch-returns-once",
        how=remove,
        seed="b11",
    ),
    Mutation(
        "branches: a result is lost",
        rule="result-is-kept",
        how=remove,
        seed="b0",
    ),
    Mutation(
        "branches: one success more than enough is awaited",
        rule="join-goes-on-when-met",
        how=Compare(">=", ">"),
        seed="b0",
    ),
    Mutation(
        "branches: a branch that waits never begins",
        rule="next-branch-begins",
        how=remove,
        seed="b12",
    ),
    Mutation(
        "branches: a look that finds nothing ends the work",
        rule="watch-is-not-waited-for",
        how=never,
        seed="bw4",
    ),
    Mutation(
        "submit: a message that waits is not shown",
        rule="waiting-message-is-shown",
        how=Swap("frame", "list"),
        seed="bw1",
    ),
    Mutation(
        "close: a question that has ended watches on",
        rule="watch-ends-with-question",
        how=remove,
        seed="bw1",
    ),
    Mutation(
        "scatter: a join outlives its question",
        rule="join-ends-by-the-deadline",
        how=Give("whole(now_ms() + scatter.duration_ms)"),
        seed="b0",
    ),
    Mutation(
        "scatter: one branch fewer begins",
        rule="branches-at-once-are-bounded",
        how=Compare("<=", "<"),
        seed="b0",
    ),
    Mutation(
        "bury: a branch ends its question",
        rule="branch-ends-no-question",
        how=never,
        seed="b23",
    ),
    Mutation(
        "settle: a branch that has ended is reported as settled",
        rule="ended-branch-settles-nothing",
        how=Give("1"),
        seed="b0",
    ),
    Mutation(
        "renew: the lease of a branch that has ended is kept",
        rule="ended-branch-is-not-renewed",
        how=Give("false"),
        seed="b11",
    ),
)


def main() -> None:
    """Print for each mutation the first seed that shows it."""
    for mutation in MUTATIONS:
        kinds = ("", BRANCHES, WATCHES)
        seeds = (f"{kind}{number}" for number in range(400) for kind in kinds)
        seed = next((seed for seed in seeds if mutation.is_noticed(seed)), None)
        sys.stdout.write(f"{seed}  {mutation.breaks}\n")


if __name__ == "__main__":
    main()
