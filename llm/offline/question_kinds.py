"""Tells what kind of thing a question asks for: steps, a number, a place, a meaning."""

import re
from dataclasses import dataclass

_STEPS = re.compile(
    r"\bhow (?!many|much|long|often|fast|big|large|old|far|does|is\b|are\b)|\bset ?up\b|\bsteps\b"
    r"|\bwie (?!viel|lang|oft|hoch|groß|weit|alt|schnell)|\bc[oó]mo\b|\bcomment\b|\bcome\b(?! in)"
    r"|\bкак (?!ой|ая|ие|ое|долго|часто)|\bяк (?!ий|а|і|довго|часто)"
    r"|如何|怎么|怎麼|怎样|どうやって|どうすれば|方法|手順|كيف|कैसे",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"\bhow (?:many|much|long|often|fast|big|large|old|far)\b|\bwhen\b|\blimits?\b|\bmaxim"
    r"|\bwie (?:viel|lang|oft|hoch|groß|weit|schnell)|\bwann\b|\bcu[aá]nt|\bcu[aá]ndo\b|\bcombien\b"
    r"|\bquand\b|\bquant[ioae]\b|\bquando\b|сколько|скільки|\bкогда\b|\bколи\b|как (?:долго|часто)"
    r"|як (?:довго|часто)|いくつ|何(?:回|個|件|秒|分|時|日|文字|人)|いつ|どのくらい|多少|多久|几|幾"
    r"|\bكم\b|متى|कितन|कब",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\bwhere\b|\bwo\b|\bd[oó]nde\b|\boù\b|\bdove\b|\bonde\b|\bгде\b|\bде\b|どこ|哪里|哪裡|أين|कहाँ",
    re.IGNORECASE,
)
_HAS_AMOUNT = re.compile(r"\d")
_HAS_PLACE = re.compile(
    r"\S > \S|https?://|/\w+/|\b(?:under|open|below|unter|öffnen)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class QuestionKinds:
    """What a question asks for; several can be true."""

    steps: bool = False
    amount: bool = False
    place: bool = False

    def fits(self, text: str) -> bool:
        """Tell whether `text` holds the kind of thing that is asked for."""
        return (self.amount and _HAS_AMOUNT.search(text) is not None) or (
            self.place and _HAS_PLACE.search(text) is not None
        )


def classify_question(question: str) -> QuestionKinds:
    """Return what `question` asks for."""
    amount = _AMOUNT.search(question) is not None
    return QuestionKinds(
        steps=not amount and _STEPS.search(question) is not None,
        amount=amount,
        place=_PLACE.search(question) is not None,
    )
