"""Breaks the scripts on purpose, one line at a time: what the simulation must notice.

A mutation changes the text that the played Redis is handed; the files stay as they are.
"""

import sys
from dataclasses import dataclass

from tests.simulation.exploration import BrokenPromiseError, interleave

ORDERS = 20
"""How many interleavings of a scenario are tried."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """Replaces `old`, which stands in the scripts, by `new`; `breaks` says what it breaks.

    `seed` is of a drawn scenario that shows it; `python -m tests.simulation.mutations` finds
    another one, should the scenarios have changed.
    """

    breaks: str
    seed: int
    old: str
    new: str

    def __call__(self, text: str) -> str:
        return text.replace(self.old, self.new)

    def is_noticed(self, seed: int) -> bool:
        """Return whether the scenario of this seed shows it."""
        try:
            interleave(str(seed), ORDERS, self, per_scenario=ORDERS)
        except BrokenPromiseError:
            return True
        return False


MUTATIONS = (
    Mutation(
        "ownership: whoever asks holds the entry",
        2,
        "return row ~= nil and row[4] == tonumber(count)",
        "return true",
    ),
    Mutation(
        "settle: the entry stays on its stream",
        0,
        "    redis.call('XDEL', stream, unpack(ids))\n",
        "",
    ),
    Mutation(
        "settle: the entry stays pending",
        0,
        "    redis.call('XACK', stream, GROUP, unpack(ids))\n",
        "",
    ),
    Mutation(
        "settle: a closed question goes on",
        0,
        "if record[1] or not record[2] then\n    return 0\n  end\n  if closes",
        "if not record[2] then\n    return 0\n  end\n  if closes",
    ),
    Mutation(
        "forward: sent twice",
        0,
        "    put(shard, stream, fields, sends",
        "    put(shard, stream, fields)\n    put(shard, stream, fields, sends",
    ),
    Mutation(
        "forward: what a part is based on is not kept",
        9,
        "  redis.call('HSET', frames, base, frame)\n  redis.call('PEXPIREAT', frames",
        "  redis.call('HSET', frames, base .. 'x', frame)\n  redis.call('PEXPIREAT', frames",
    ),
    Mutation(
        "close: what parts were based on stays",
        9,
        "  redis.call('DEL', question.frames)\n",
        "",
    ),
    Mutation(
        "retry: a delay goes past the deadline",
        19,
        "math.min(now_ms() + delay, tonumber(record[2]))",
        "now_ms() + delay",
    ),
    Mutation(
        "retry: sent for a closed question",
        4,
        "if known[1] or not known[2] or not frame then",
        "if not known[2] or not frame then",
    ),
    Mutation(
        "retry: stays parked",
        3,
        "redis.call('HDEL', shard.parked, token)",
        "",
    ),
    Mutation(
        "order: the next message is not released",
        8,
        "  if following then\n    start(shard, question, following, now)\n  end",
        "",
    ),
    Mutation(
        "door: the open are not counted down",
        0,
        "if tenant and redis.call('HINCRBY', shard.open, tenant, '-1') <= 0 then",
        "if false then",
    ),
    Mutation(
        "door: the quota lets one more in",
        16,
        "if open >= quota then",
        "if open > quota then",
    ),
    Mutation(
        "door: a duplicate is let in again",
        0,
        "if redis.call('EXISTS', question.record) == 1 then\n  local last",
        "if false then\n  local last",
    ),
    Mutation(
        "door: what was there before is handed over as what came in",
        0,
        "  if waited then",
        "  if false then",
    ),
    Mutation(
        "door: what is taken at once is not kept",
        15,
        "redis.call('HSET', question.frames, base, frame)",
        "redis.call('HSET', question.frames, base .. 'x', frame)",
    ),
    Mutation(
        "take: what waits on the stream is skipped",
        0,
        "  local read = redis.pcall('XREADGROUP', 'GROUP', GROUP, consumer, 'COUNT', places,"
        " 'STREAMS', stream, '>')\n",
        "  local read = false\n",
    ),
    Mutation(
        "take: what was delivered is new to the group",
        0,
        "        redis.call('XGROUP', 'SETID', stream, GROUP, last)\n",
        "",
    ),
    Mutation(
        "recover: what arrived is handed back as well",
        22,
        "  if known[id] then",
        "  if false then",
    ),
    Mutation(
        "recover: what was never heard of is gone",
        16,
        "  else\n    local entry = redis.call('XRANGE', stream, id, id)[1]",
        "  else\n    local entry",
    ),
    Mutation(
        "deadline: nothing is overdue",
        3,
        "return score and tonumber(score) <= now",
        "return score and tonumber(score) < now - 1000",
    ),
    Mutation(
        "deadline: not told by the alarm",
        0,
        "if redis.call('ZRANGE', zset, '0', '0')[1] == member then",
        "if false then",
    ),
    Mutation(
        "poison: started once more",
        46,
        "local spent = started >= starts",
        "local spent = started > starts",
    ),
    Mutation(
        "poison: starts are forgotten when handed back",
        2,
        "      started = started + (tonumber(value) or 0)\n",
        "      started = started\n",
    ),
    Mutation(
        "sweep: a renewed lease is taken",
        30,
        "if row[3] < lease then",
        "if row[3] < lease / 2 then",
    ),
    Mutation(
        "sweep: given back without its place given up",
        0,
        "  redis.call('XACK', stream, GROUP, id)\n  redis.call('XDEL', stream, id)\n"
        "  redis.call('XADD', stream, '*', unpack(fields))",
        "  redis.call('XADD', stream, '*', unpack(fields))",
    ),
    Mutation(
        "forget: the journal stays",
        1,
        "  redis.call('DEL', journal)\n",
        "",
    ),
    Mutation(
        "renew: the lease is not kept",
        11,
        "redis.call('XCLAIM', stream, GROUP, consumer, 0, id, 'JUSTID')",
        "redis.call('PING')",
    ),
    Mutation(
        "close: no time to live",
        0,
        "redis.call('PEXPIRE', results, shard.ttl)",
        "",
    ),
)


def main() -> None:
    """Print for each mutation the first seed that shows it."""
    for mutation in MUTATIONS:
        seed = next((seed for seed in range(400) if mutation.is_noticed(seed)), None)
        sys.stdout.write(f"{seed}  {mutation.breaks}\n")


if __name__ == "__main__":
    main()
