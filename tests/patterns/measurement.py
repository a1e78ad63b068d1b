"""Measures patterns against the attacks on them, in a process that can be killed.

`python -m tests.patterns.measurement` reads patterns as JSON from its input and writes one line
before each measurement and one for each finding; a pattern that holds the process is known by the
last line before the silence.
"""

import json
import re
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter, thread_time
from typing import Any

from tests.patterns.attack_strings import Attack, attacks_on
from tests.patterns.collection import ROOT, Pattern

LARGEST = 100_000
_TINY = (16, 24, 32, 64, 256, 1024)
_SMALL = 3000
_SHORT_PUMP = 3
_LONG_PUMP_TIMES = 4
_SUSPICIOUS_SECONDS = 0.0004
_SUSPICIOUS_TIMES = 3
"""What takes this many times as long as ordinary words of the same length is looked at closely."""
_ORDINARY = "Some words, as people write them: 12 of them. "
_TOO_LONG_FOR_TINY_SECONDS = 0.25
_CLEAR_SECONDS = 0.06
"""What takes as long is compared with half its length."""
_LEAST_SECONDS = 0.02
_LINEAR_GROWTH = 2.8
"""Twice the length may take this much longer; 2 is linear and 4 is quadratic."""
_LINEAR_FOURFOLD = 6
_CONFIRMATIONS = 3
_MOST_SECONDS = 1.5
"""For 100,000 characters, however linearly."""


def find_superlinear(patterns: Sequence[Pattern], silence_seconds: float = 40) -> list[str]:
    """Return what is wrong with which pattern, measured in a separate process."""
    asked = json.dumps([_as_json(pattern) for pattern in patterns])
    with subprocess.Popen(
        [sys.executable, "-m", "tests.patterns.measurement"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(asked)
        process.stdin.close()
        lines = _lines(process, silence_seconds)
    findings = [line.removeprefix("! ") for line in lines if line.startswith("! ")]
    if lines[-1:] != ["done"]:
        findings.append(f"{lines[-1] if lines else 'nothing'}: no end within {silence_seconds} s")
    return findings


def _lines(process: subprocess.Popen[str], silence_seconds: float) -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    answered_at = perf_counter()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while perf_counter() - answered_at < silence_seconds:
            if not selector.select(timeout=1):
                continue
            line = process.stdout.readline()
            if not line:
                return lines
            lines.append(line.rstrip("\n"))
            answered_at = perf_counter()
    process.kill()
    return lines


def _as_json(pattern: Pattern) -> dict[str, Any]:
    in_bytes = isinstance(pattern.source, bytes)
    source = pattern.source.decode("latin-1") if isinstance(pattern.source, bytes) else None
    return {
        "place": pattern.place,
        "source": source if in_bytes else pattern.source,
        "flags": pattern.flags & ~re.UNICODE if in_bytes else pattern.flags,
        "bytes": in_bytes,
        "methods": sorted(pattern.methods),
    }


def measure(patterns: Iterable[dict[str, Any]], write: Callable[[str], None]) -> None:
    """Write a line for each pattern that is not linear."""
    for row in patterns:
        source, flags = row["source"], row["flags"]
        compiled: re.Pattern[Any] = re.compile(
            source.encode("latin-1") if row["bytes"] else source, flags
        )
        attacks = attacks_on(source, flags)
        for method in _methods_to_run(row["methods"]):
            run = _runner(compiled, method)
            results = _beats(f"{row['place']}: {method} of {source!r}", attacks, write)
            if finding := _first_finding(run, results):
                write(f"! {row['place']}: {method} {finding}; the pattern is {source!r}")
                break
    write("done")


def _beats(line: str, attacks: Iterable[Attack], write: Callable[[str], None]) -> Iterator[Attack]:
    """Yield the attacks, and write the line before the first and then once a second."""
    written = float("-inf")
    for attack in attacks:
        if perf_counter() - written > 1:
            write(line)
            written = perf_counter()
        yield attack


def _methods_to_run(methods: Iterable[str]) -> list[str]:
    """Return one method for each way to go over a text: at its start, or from every place."""
    named = set(methods)
    ways: list[str] = [way for way in ("match", "fullmatch", "search") if way in named]
    if named - {"match", "fullmatch", "search"}:
        ways = [way for way in ways if way == "fullmatch"] + ["finditer"]
    return ways


def _runner(compiled: re.Pattern[Any], method: str) -> Callable[[str], float]:
    def run(text: str) -> float:
        subject: Any = text.encode("utf-8") if isinstance(compiled.pattern, bytes) else text
        started = thread_time()
        if method == "finditer":
            for _ in compiled.finditer(subject):
                pass
        else:
            getattr(compiled, method)(subject)
        return thread_time() - started

    return run


def _first_finding(run: Callable[[str], float], attacks: Iterable[Attack]) -> str | None:
    ordinary = Attack("", _ORDINARY, "").text(_SMALL)
    unsuspicious = min(run(ordinary) for _ in range(3)) * _SUSPICIOUS_TIMES + _SUSPICIOUS_SECONDS
    for attack in attacks:
        if finding := _finding(run, attack, unsuspicious):
            return finding
    return None


def _finding(run: Callable[[str], float], attack: Attack, unsuspicious: float) -> str | None:
    for length in _TINY:
        if (seconds := run(attack.text(length))) > _TOO_LONG_FOR_TINY_SECONDS:
            return put_into_words(attack, length, seconds)
    # A long pump begins fewer matches, so that it takes a longer text to see what each one costs.
    times = _LONG_PUMP_TIMES if len(attack.pump) > _SHORT_PUMP else 1
    text = attack.text(_SMALL * times)
    if any(run(text) < unsuspicious * times for _ in range(2)):
        return None
    return _growth(run, attack, _SMALL * times)


def _growth(run: Callable[[str], float], attack: Attack, small: int) -> str | None:
    first, fourfold = (_shortest(run, attack, length) for length in (small, 4 * small))
    if fourfold < _LINEAR_FOURFOLD * first and fourfold * LARGEST < 4 * small * _MOST_SECONDS:
        return None
    length, seconds = small, first
    while length < LARGEST and seconds < _CLEAR_SECONDS:
        length = min(length * 2, LARGEST)
        seconds = run(attack.text(length))
    if seconds < _LEAST_SECONDS:
        return None
    for _ in range(_CONFIRMATIONS):
        half, whole = (_shortest(run, attack, it) for it in (length // 2, length))
        slow = whole * LARGEST / length > _MOST_SECONDS
        if whole / max(half, 1e-6) < _LINEAR_GROWTH and not slow:
            return None
    return put_into_words(attack, length, seconds)


def _shortest(run: Callable[[str], float], attack: Attack, length: int) -> float:
    """Return the seconds of one run, or of the shorter of two where a pause would count."""
    seconds = run(attack.text(length))
    return seconds if seconds > _CLEAR_SECONDS else min(seconds, run(attack.text(length)))


def put_into_words(attack: Attack, length: int, seconds: float) -> str:
    return (
        f"takes {seconds:.3f} s for {length:,} characters of "
        f"{attack.before!r} + {attack.pump!r} * n + {attack.after!r}"
    )


def _print(line: str) -> None:
    print(line.encode("utf-8", "backslashreplace").decode(), flush=True)  # noqa: T201


if __name__ == "__main__":
    measure(json.load(sys.stdin), _print)
