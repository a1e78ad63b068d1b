"""Frequent words that do not describe a page, by language, and words that only ask.

Words of fewer than four letters are left out: `knowledge.rule_descriptions` counts none.
"""

_BY_LANGUAGE = {
    "en": "about above after also because been before being below between both could does doing "
    "down during each from further have having here into itself just like make more most "
    "must need once only other over same should some such than that their them then there "
    "these they this those through under until used uses using very well were what when "
    "where which while will with would your following example however without within",
    "de": "aber alle also auch dann dass dies diese dieser dieses durch eine einem einen einer "
    "eines haben hier ihre ihren ihrer kann können muss nach nicht noch oder sein sich sind "
    "über wenn werden wird zwischen sollte müssen wurde",
    "es": "algo antes como contra cual cuando desde donde ella ellas ellos entre esta estas este "
    "esto estos hasta para pero poco porque puede pueden sobre también tiene todo unas unos "
    "usted",
    "fr": "afin ainsi alors aussi autre avec cela cette chaque comme dans donc dont elle elles "
    "être fait leur leurs lors mais même nous peut peuvent plus pour quand sans sont sous "
    "tous tout toute votre vous",
    "it": "alla alle anche come dalla degli della delle dello deve essere hanno loro nella però "
    "quando quella quello questa queste questi questo sono stato sulla tutti tutto",
    "pt": "antes cada como deve elas eles entre essa esse esta este isso isto mais muito para "
    "pela pelo pode podem porque quando seus sobre suas também você",
    "ru": "более была были было быть весь всех если есть когда который которые которая либо между "
    "можно надо также такой того только через чтобы этого этой этот нужно",
    "uk": "була були було бути вона вони його коли який котрий лише можна може також такий тільки "
    "цього через якщо треба потрібно після",
    "hi": "नहीं करना करें करने किया सकते सकता अपने",
    "ar": "التي الذي الذين كانت يكون يمكن",
    "nl": "deze door hebben heeft kunnen maar moet naar niet onder over voor wanneer wordt worden "
    "zijn zoals",
    "pl": "albo była było jako jest jeśli każdy między może można oraz przed przez przy także "
    "tego tylko więc wszystkie",
}

ASKING_WORDS = (
    "amount big called cost costs date difference differ different exact exactly "
    "fast heavy high kind large long many mean means meaning much name number often old permitted "
    "possible price reason tall time type value wide work works year happen happens say says said "
    "still compare versus far deep please need which does get use"
)
"""English words that ask for a kind of answer and are no subject of a question."""

STOP_WORDS = frozenset(word for words in _BY_LANGUAGE.values() for word in words.split())
