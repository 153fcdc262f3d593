"""May a question be listed in public? The model's word, and plain rules that it cannot overrule.

Pure. Refusing to list hides nothing from whoever asked, and keeps the answer: it only stays off the front page.
What must never be here: a model's questions (recipe.py).
"""

import re

from web.recipe import FIT_MIN

_DIAGNOSIS = (
    r"\b(?:cancer|hiv|aids|depress\w+|schizo\w+|bipolar|pregnan\w+|addict\w*|diabet\w+|hepatitis|dement\w+|autis\w+"
    r"|suicid\w+|diagnos\w+|abortion)"
)

_RULES = (
    re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+"),  # an e-mail address
    re.compile(r"(?:\d[ -]?){7,}"),  # a card, phone, account or identity number
    re.compile(r"https?://|www\.", re.IGNORECASE),  # advertisement
    re.compile(rf"\b[A-Z][a-z]+ [A-Z][a-z]+\b.*{_DIAGNOSIS}", re.DOTALL | re.IGNORECASE),  # a name before a diagnosis
    re.compile(rf"(?i:{_DIAGNOSIS}).*\b[A-Z][a-z]+ [A-Z][a-z]+\b", re.DOTALL),  # ... and after one
    re.compile(r"\b\d{1,5} [A-Z][a-z]+ (?:street|road|lane|avenue|drive|st|rd|ave)\b", re.IGNORECASE),  # an address
    re.compile(
        r"\b(?:n[i1]gg(?:er|a)s?|f[a4]gg?(?:ot)?s?|k[i1]kes?|sp[i1]cs?|ch[i1]nks?|tr[a4]nn(?:y|ies)|ret[a4]rd(?:ed|s)?"
        r"|wh[o0]res?|c[u]nts?|sluts?|wetbacks?|pak[i1]s?|g[o0]{2}ks?)\b",
        re.IGNORECASE,
    ),  # slurs
)


def may_list(words: str, fit: float | None) -> bool:
    """Is it fit by the model's number, and against none of the rules?"""
    return fit is not None and fit >= FIT_MIN and not any(rule.search(words) for rule in _RULES)
