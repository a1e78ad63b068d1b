"""Classifies what kind of thing a question asks for, and whether a text holds such a thing.

Kinds are *strict* when a text without such a thing cannot answer: an amount needs a number, a
price a price, a date a time. Others only make a text more likely to answer.
"""

import re
from dataclasses import dataclass

from llm.offline.phrases import AUXILIARIES, MONTHS

_STEPS = re.compile(
    r"\bhow (?!many|much|long|often|fast|big|large|old|far|high|deep|heavy|tall|wide|does"
    r"|is\b|are\b|come\b|early|late|soon|likely)"
    r"|\bhow (?:is|are) .{1,60}?(?:ed|made|sent|paid|kept|built|done)\b"
    r"|\bset ?up\b|\bsteps\b"
    r"|\bwie (?!viel|lang|oft|hoch|groß|weit|alt|schnell)|\bc[oó]mo\b|\bcomment\b|\bcome\b(?! in)"
    r"|\bкак (?!ой|ая|ие|ое|долго|часто)|\bяк (?!ий|а|і|довго|часто)"
    r"|如何|怎么|怎麼|怎样|どうやって|どうすれば|方法|手順|كيف|कैसे",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b(?:until when|by when|since when|deadline)\b"
    r"|\b(?:what|which) (?:time|date|day|year|month|century|decade)\b"
    r"|\bwann\b|\bcu[aá]ndo\b|\bquand\b|\bquando\b|\bкогда\b|\bколи\b|いつ|متى|कब",
    re.IGNORECASE,
)
_DURATION = re.compile(
    r"\b(?:how long|wie lange?) (?:is|are|does|do|will|ist|sind|dauert)\b", re.IGNORECASE
)
_TAKES_TIME = re.compile(
    r"\bhow long\b.{0,80}\b(?:takes?|lasts?|stays?|remains?|wait|kept|valid|stored|retained|parked?"
    r"|borrow(?:ed)?)\b|\bwie lange\b",
    re.IGNORECASE,
)
_HAS_SPAN = re.compile(
    r"(?:second|minute|hour|day|night|week|month|year|decade|sekunde|minute|stunde|tag|nacht|nächte"
    r"|woche|monat|jahr)(?:s|n|en|e)?\b|\b\d{1,4} ?(?:h|min|s|sec|d)\b|\d:\d\d"
    r"|\b(?:until|till|to|bis|overnight|always|ever|indefinitely|permanently|unlimited|uhr|am|pm"
    r"|immer|dauerhaft|unbefristet)\b",
    re.IGNORECASE,
)
_DEADLINE = re.compile(r"\b(?:until when|by when|deadline|bis wann)\b", re.IGNORECASE)
_HAS_DEADLINE = re.compile(
    r"\b(?:until|till|by|before|within|latest|deadline|due|ends?|expires?|bis"
    r"|extended|prolonged|verlängert|prolongé|laps(?:e|es|ed)|forfeit(?:s|ed)?|valid|vor|innerhalb|spätestens|gültig|verf[aä]ll(?:t|en))\b",
    re.IGNORECASE,
)
_WHEN = re.compile(r"\bwhen\b", re.IGNORECASE)
_ASKS_OTHERWISE = re.compile(
    r"\A(?:and |so |but )?(?:what|how|why|which|who|whom|whose|where)\b", re.IGNORECASE
)
"""Behind another question word "when" is a conjunction: "What happens when ...?"."""
_VERSION = re.compile(
    r"\b(?:which|what) (?:version|release)\b|\bversion\?\Z|\bwelche[rn]? version\b", re.IGNORECASE
)
_CHANGES = re.compile(
    r"\b(?:versions?|chang(?:es|ed|elog)|releases?d?|new in|what\W?s new|deprecated|history"
    r"|since when|introduced|removed in|added in|v?\d{1,4}\.\d{1,4}|arrived?|version(?:en)?"
    r"|geändert|neu in)\b",
    re.IGNORECASE,
)
_HAS_VERSION = re.compile(r"\bv?\d+\.\d|\b(?:version|release) \d", re.IGNORECASE)
_AMOUNT = re.compile(
    r"\bhow (?:many|much|long|often|fast|big|large|old|far|high|deep|heavy|tall|wide)\b"
    r"|\blimits?\b|\bmaxim"
    r"|\b(?:what|which) (?:percentage|percent|share|number|amount|sum|portion|proportion)\b"
    r"|\bwie (?:viel|lang|oft|hoch|groß|weit|schnell)|\bcu[aá]nt|\bcombien\b"
    r"|\bquant[ioae]\b|сколько|скільки|как (?:долго|часто)"
    r"|як (?:довго|часто)|いくつ|何(?:回|個|件|秒|分|時|日|文字|人)|どのくらい|多少|多久|几|幾"
    r"|\bكم\b|कितन",
    re.IGNORECASE,
)
_PRICE = re.compile(
    r"\bcosts?\b|\bprices?\b|\bfees?\b|\bexpensive\b|\bcharged? (?:for|me)\b"
    r"|\bhow much .{0,40}\bpay\b"
    r"|\bkostet\b|\bkosten\b|\bpreis|\bcuesta|\bprecio|\bcoûte|\bprix\b|\bcosta\b|\bprezzo|\bpreço"
    r"|стоит|цена|коштує|ціна|値段|料金|価格|价格|多少钱|費用|费用",
    re.IGNORECASE,
)
_ASKS_PRICE = re.compile(
    r"\bhow (?:much|expensive)\b|\b(?:what|which) (?:does|do|is|are|was|were|will|would|did)\b"
    r"|\bprice of\b|\A\w+ (?:price|cost|fee)|\bwie (?:viel|hoch|teuer)|\bwas kost|\bcu[aá]nto\b"
    r"|\bcombien\b|\bquel\b|\bquant[oi]\b|сколько|скільки|[\u3040-\u9fff]",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\bwhere\b|\bwo\b|\bd[oó]nde\b|\boù\b|\bdove\b|\bonde\b|\bгде\b|\bде\b|どこ|哪里|哪裡|أين|कहाँ"
    r"|\b(?:what|which) (?:country|city|town|state|place|region|island|continent|county)\b",
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"\bwho(?:m|se)?\b|\bwer\b|\bwem\b|\bwen\b|\bqui[eé]n|\bchi\b|\bquem\b|\bкто\b|\bхто\b|誰|谁|कौन"
    r"|\bqui (?!est-ce)",
    re.IGNORECASE,
)
_ROLE_HOLDER = re.compile(
    r"\A(?:and |so )?who (?:is|are) (?:the|our|my) [\w-]{1,30}(?: [\w-]{1,30})?\s?\?\Z",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\bwhy\b|\b(?:what|which) reasons?\b|\bwhat (?:causes?|caused)\b|\bhow come\b"
    r"|\bwarum\b|\bwieso\b|\bweshalb\b|\bpor qu[eé]\b|\bpourquoi\b|\bperch[eé]\b|почему|зачем|чому"
    r"|なぜ|为什么|لماذا|क्यों",
    re.IGNORECASE,
)
_PERMISSION = re.compile(
    r"\A(?:and |so |but )?(?:can|may|could|am i|are we|is it (?:ok|okay|allowed|possible|permitted)"
    r"|do i (?:have|need)|must i|should i)\b|\ballowed\b|\bpermitted\b|\bforbidden\b|\bprohibited\b"
    r"|\bdarf\b|\bdürfen\b|\bkann ich\b|\bpuedo\b|\bse puede\b|\bpuis-je\b|\bpeut-on\b|\bposso\b"
    r"|можно ли|\bможно\b|чи можна|\bможна\b",
    re.IGNORECASE,
)

_MONTH = "(?:{})".format(
    "|".join(sorted({name.title() for name in MONTHS} | (set(MONTHS) - {"may", "mar"})))
)
_HAS_DIGIT = re.compile(r"\d")
_AMOUNT_DIGIT = re.compile(r"(?<![^\W_])(?<![^\W_]-)\d")
"""A digit outside of a name such as AP3-CRT."""
_DATE = re.compile(
    r"(?<!until )(?<!till )(?<!to )(?<!by )(?<!bis )(?<!bis zum )(?<!\d)"
    r"(?:\d{4}-\d{2}-\d{2}|\d{1,2}(?:st|nd|rd|th|\.)? (?:of )?" + _MONTH + r"\b\.?(?:,? \d{4})?)"
    r"|\b" + _MONTH + r" \d{1,2}(?:st|nd|rd|th)?(?:, \d{4})?(?!\d)"
)
"""A day that no amount is: "The lift is repaired on 12 March" does not say how long that takes."""
_NUMERALS = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fifteen|twenty"
    r"|thirty|forty|fifty|sixty|hundred|thousand|million|half|quarter|third|dozen|once|twice|every"
    r"|each|daily|weekly|monthly|yearly|annually|hourly|nightly|unlimited|none|zero|several|first"
    r"|second|no limit|free|always|never|minutes?|hours?|days?|weeks?|months?|years?"
    r"|ein|eine|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|hundert|jede[nrs]?"
    r"|un|una|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|deux|trois|quatre|cinq|sept|huit|neuf"
    r"|dix|due|tre|quattro|cinque|sei|sette|otto|nove|dieci|dois|três|quatro|sete|oito|dez"
    r"|один|два|три|четыре|пять|шесть|семь|восемь|девять|десять|чотири|сім|вісім)\b"
    r"|[一二三四五六七八九十百千八]|ثمان|سبع|ست|خمس|أربع|ثلاث|عشر|दो|तीन|चार|पाँच|दस",
    re.IGNORECASE,
)
_TIMES = re.compile(
    r"\b(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|june"
    r"|july|august|september|october|november|december|century|before|after|until|till|within|during"
    r"|daily|weekly|monthly|night|morning|noon|midnight|evening|weekends?|weekdays?|spring|summer"
    r"|autumn|winter|every|each|immediately|as soon as|at once|when|once|since|always|never|today"
    r"|tomorrow|minutes?|hours?|days?|weeks?|months?|years?"
    r"|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|nach|vor|bis|täglich|nachts)\b",
    re.IGNORECASE,
)
_MONEY = re.compile(
    r"[€$£¥₹₽]|\b(?:EUR|USD|GBP|CHF|JPY|euros?|dollars?|pounds?|francs?|cents?|pence|free|price[sd]?"
    r"|fees?|costs?|charge[sd]?|surcharge|tariffs?|rates?|per cent|percent|rubles?|yen)\b|%"
    r"|kostenlos|gratis|gratuit|бесплатн|безкоштовн|руб|грн|円|元|免费|無料|מחיר",
    re.IGNORECASE,
)
_FREE = re.compile(r"\b(?:free|kostenlos|gratis|gratuit)\b", re.IGNORECASE)
_PAYS = re.compile(r"\b(?:pays?|paid|costs?|billed|zahl(?:t|en)|kostet)\b", re.IGNORECASE)
_NO_VALUE = re.compile(
    r"\|\s*(?:-|\u2013|\u2014|none|no|n/?a|free|included|on request|unlimited|closed"
    r"|not [a-z]{4,12}|keine?|kostenlos|inklusive|auf anfrage|geschlossen|nicht [a-zäöüß]{4,15})"
    r"\s*(?:\||\Z)",
    re.IGNORECASE,
)
"""A cell that answers a question for a sum or an amount without one."""
_PRICE_LIKE = re.compile(
    r"(?<![\d.,:])\d{1,7}[.,]\d{2}(?![\d.,:])(?!\s?(?:[kcmµ]?m\b|k?g\b|[mc]?l\b|°|h\b|[kMGT]i?B\b))"
)
_HAS_PLACE = re.compile(
    r"\S > \S|https?://|/\w+/|\b(?:under|open|below|above|behind|near|next to|beside|inside|outside"
    r"|located|situated|born|stored|unter|öffnen)\b|\b(?:in|at|on|from|to|of) (?:the )?[A-Z]"
    r"|\b(?:in|on|at) the \w+",
)
_HAS_NAME = re.compile(r"(?<=[\w,;:)] )(?!I\b)[A-Z][\w'\u2019.-]*[a-z]")
_HAS_REASON = re.compile(
    r"\b(?:because|since|so that|due to|reasons?|therefore|thus|otherwise|owing to|hence"
    r"|in order to"
    r"|caused?|as a result|result(?:s|ed)? (?:in|of|from)|leads? to|led to|so as to|for fear"
    r"|to avoid"
    r"|to prevent|to protect|which is why|thanks to|motivated|weil|damit|denn|wegen|deshalb|daher"
    r"|porque|debido|parce que|afin|perché|poiché|потому|чтобы|тому що|щоб)\b|, (?:so|as|for|or) "
    r"|ため|ので|から|因为|由于|以便|لأن|क्योंकि",
    re.IGNORECASE,
)
_HAS_PERMISSION = re.compile(
    r"\b(?:can|cannot|may|must|allowed|permitted|forbidden|prohibited|possible|impossible|welcome"
    r"|accepted|supported|unless|only|not|never|need|needs|required|yes|no|excluded|fine|enough"
    r"|darf|dürfen|erlaubt|verboten|nicht|nur|muss|puede|permite|prohibido|peut|interdit|può"
    r"|vietato|можно|нельзя|можна|заборонено)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class QuestionKinds:
    """What a question asks for; several can be true."""

    steps: bool = False
    amount: bool = False
    price: bool = False
    time: bool = False
    place: bool = False
    person: bool = False
    reason: bool = False
    permission: bool = False
    version: bool = False
    role_holder: bool = False
    deadline: bool = False
    duration: bool = False
    span: bool = False
    yes_or_no: bool = False
    changes: bool = False

    def fits(self, text: str, setting: str = "") -> bool:
        """Return whether `text` holds the kind of thing that is asked for.

        `setting` is the text around it, where a currency may be named for a whole table.
        """
        return (
            (self.price and has_number(text) and _has_price(text, setting))
            or (self.amount and has_number(_DATE.sub(" ", text)))
            or (self.time and _has_time(text) and self._has_deadline(f"{setting}\n{text}"))
            or (self.place and _HAS_PLACE.search(text) is not None)
            or (self.person and _HAS_NAME.search(text) is not None)
            or (self.reason and _HAS_REASON.search(text) is not None)
            or (self.version and _HAS_VERSION.search(text) is not None)
            or (self.permission and _HAS_PERMISSION.search(text) is not None)
        )

    def _has_deadline(self, text: str) -> bool:
        return not self.deadline or _HAS_DEADLINE.search(text) is not None

    def rules_out(self, text: str, setting: str = "") -> bool:
        """Return whether `text` cannot answer, because it lacks what every answer has."""
        if setting and _NO_VALUE.search(text) is not None:
            return False
        if self.price:
            has_price = _has_price(text, setting)
            return not (has_price and has_number(text)) and "free" not in text
        if self.version:
            return _HAS_VERSION.search(text) is None
        if self.role_holder:
            return _HAS_NAME.search(text) is None
        if self.time:
            return not (_has_time(text) and self._has_deadline(f"{setting}\n{text}"))
        if self.span and _HAS_SPAN.search(text) is None:
            return True
        return self.amount and not has_number(_DATE.sub(" ", text))

    @property
    def depends_on_group(self) -> bool:
        """Whether the answer for one group of people is none for another."""
        return self.amount or self.price or self.permission

    @property
    def may_stand_in_heading(self) -> bool:
        """Whether a heading often holds the thing asked for: a date or a version."""
        return self.time or self.version

    @property
    def asks_for_thing(self) -> bool:
        """Whether the kind of the answer is known."""
        return any(
            (
                self.amount,
                self.price,
                self.time,
                self.place,
                self.person,
                self.reason,
                self.version,
            )
        )


def classify_question(question: str) -> QuestionKinds:
    """Return what `question` asks for."""
    time = _TIME.search(question) is not None or (
        _WHEN.search(question) is not None and _ASKS_OTHERWISE.search(question) is None
    )
    price = _PRICE.search(question) is not None and _ASKS_PRICE.search(question) is not None
    amount = not time and (_AMOUNT.search(question) is not None)
    reason = _REASON.search(question) is not None
    steps = not amount and not time and not reason and _STEPS.search(question) is not None
    return QuestionKinds(
        steps=steps,
        amount=amount and not reason and not steps,
        price=price and not steps and not reason,
        time=time and not reason and not steps,
        place=_PLACE.search(question) is not None,
        person=_PERSON.search(question) is not None,
        reason=reason,
        permission=_PERMISSION.search(question.strip()) is not None,
        version=_VERSION.search(question) is not None,
        role_holder=_ROLE_HOLDER.search(question) is not None,
        deadline=_DEADLINE.search(question) is not None,
        span=amount and _TAKES_TIME.search(question) is not None,
        duration=_DURATION.search(question) is not None,
        changes=_CHANGES.search(question) is not None,
        yes_or_no=not AUXILIARIES.isdisjoint(question.lower().split()[:1]),
    )


def has_number(text: str) -> bool:
    """Return whether `text` has a number, in digits or as a word."""
    return _AMOUNT_DIGIT.search(text) is not None or _NUMERALS.search(text) is not None


def states_no_sum(text: str) -> bool:
    """Return whether `text` only says that something costs nothing: no sum, and who pays what."""
    if _FREE.search(text) is None or _PAYS.search(text) is not None:
        return False
    return _HAS_DIGIT.search(text) is None


def _has_price(text: str, setting: str) -> bool:
    """Return whether `text` or its setting names money, or a number looks like a price."""
    return _MONEY.search(f"{text}\n{setting}") is not None or _PRICE_LIKE.search(text) is not None


def _has_time(text: str) -> bool:
    return _HAS_DIGIT.search(text) is not None or _TIMES.search(text) is not None
