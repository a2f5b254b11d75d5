r"""One spelling for the many ways to write the same short LaTeX.

Only spelling: ``\dfrac12`` becomes ``\frac{1}{2}``, and nothing is computed. Texts here are
answers, at most :data:`~assay.verifiers.text.answer.MAX_ANSWER` characters long.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable

from ..text.markup import TEXT, strip_math_delimiters
from .tokens import FUNCTIONS, GREEK

Replacement = str | Callable[[re.Match[str]], str]

_CHARACTERS = str.maketrans(
    {
        "−": "-", "–": "-", "﹣": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "÷": "/",
        "π": r"\pi ", "∞": r"\infty ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ",
        "√": r"\sqrt ", "∪": r"\cup ", "⋃": r"\cup ", "∈": r"\in ", "≈": r"\approx ",
        "∅": r"\emptyset ", "∩": r"\cap ", "∀": r"\forall ", "∃": r"\exists ", "∣": "|",
        "±": r"\pm ", "⟨": "(", "⟩": ")", "\u00a0": " ", "\u202f": " ", "\u2009": " ",
        "’": "'", "¬": r"\neg ", "≡": r"\equiv ", "⁄": "/", "₁": "_1", "₂": "_2", "₀": "_0",
        "∶": ":", "∠": r"\angle ", "△": r"\triangle ", "∥": r"\parallel ", "⊥": r"\perp ",
        "∧": r"\wedge ", "∨": r"\vee ", "：": ":", "、": ",",
        **dict.fromkeys("\u200b\u200e\u200f\u2060\ufeff\u00ad✓✔✅", ""),
        **{chr(0x1D7CE + n): str(n % 10) for n in range(50)},
        **{chr(0x1D400 + n): chr(65 + n % 52 + 6 * (n % 52 > 25)) for n in range(104)},
        "ℎ": "h", "℃": "°C", "℉": "°F",
        **{char: rf"\frac{{{top}}}{{{bottom}}}" for char, top, bottom in zip(
            "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞", "112131234151357", "233445555668888", strict=True)},
        **{chr(0x2460 + n): f"{n + 1}" for n in range(20)},
        **{chr(0xFEE0 + ord(char)): char for char in "0123456789-+=(),./%<>"},
        **{char: rf"\mathbb{{{name}}}" for char, name in zip("ℝℤℕℚℂ", "RZNQC", strict=True)},
        **{char: rf"\{name} " for char, name in zip("αβγδεζηθικλμνξρστφχψωΓΔΘΛΣΦΨ", (
            "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
            "lambda", "mu", "nu", "xi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega",
            "Gamma", "Delta", "Theta", "Lambda", "Sigma", "Phi", "Psi"), strict=True)},
    }
)  # fmt: skip
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n")
_RAISED_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]+")
_RAISED_SIGN = re.compile("^[⁻⁺](?=[0-9])")
_ROOT_OF = re.compile(r"([√∛])\s?(\d(?:[\d.]*\d)?)")  # √12 is no √1 times 2
_COUNTED = re.compile(
    r"(?<=\d)\s?(\\text\{\s?)?[个個只種种人次本条張张元岁年页名位块倍分円개명원]\s?(?(1)\})\Z"
)
_UNITS_ABROAD = {
    "厘米": "cm", "毫米": "mm", "千米": "km", "公里": "km", "米": "m", "千克": "kg", "公斤": "kg",
    "克": "g", "毫升": "mL", "升": "L", "小时": "hours", "分钟": "minutes", "秒": "s", "天": "days",
    "平方厘米": "square cm", "平方米": "square m", "立方厘米": "cubic cm", "立方米": "cubic m",
    "см": "cm", "мм": "mm", "км": "km", "м": "m", "кг": "kg", "г": "g", "ч": "h", "мин": "min",
}  # fmt: skip
_UNIT_ABROAD = re.compile(
    rf"(?<=[\d}}\s,])(\\text\{{\s?)?({'|'.join(_UNITS_ABROAD)})(?(1)\}})(?=[\s^²³.]|\Z)"
)
_CIRCLED_RUN = re.compile("[①-⑳](?=[①-⑳])")

_SPELLING = {
    "dfrac": r"\frac", "tfrac": r"\frac", "cfrac": r"\frac", "leq": r"\le", "leqslant": r"\le",
    "geq": r"\ge", "geqslant": r"\ge", "neq": r"\ne", "lt": "<", "gt": ">", "infin": r"\infty",
    "varnothing": r"\emptyset", "lbrace": r"\{", "rbrace": r"\}", "lbrack": "[", "rbrack": "]",
    "degree": "°", "ast": "*", "ldots": r"\dots", "cdots": r"\dots", "land": r"\wedge",
    "lnot": r"\neg", "lor": " , ", "vee": " , ", "nicefrac": r"\frac", "sfrac": r"\frac",
    "Pr": "P", "bar": r"\overline",
    "varphi": r"\phi", "vartheta": r"\theta", "varepsilon": r"\epsilon",
    "langle": "(", "rangle": ")", "left": "", "right": "", "big": "", "Big": "", "bigl": "",
    "bigr": "", "Bigl": "", "Bigr": "", "lvert": "|", "rvert": "|", "vert": "|", "mid": "|",
    "plusmn": r"\pm", "pmod": r"\mod", "bmod": r"\mod",
    "pounds": "£", "euro": "€", "yen": "¥",
    "tg": r"\tan", "ctg": r"\cot", "arctg": r"\arctan", "arcctg": r"\arccot",
    "dbinom": r"\binom", "tbinom": r"\binom", "surd": r"\sqrt", "rightarrow": r"\to",
    "longrightarrow": r"\to", "backslash": r"\setminus", "colon": ":", "thickapprox": r"\approx",
    "|": "|", "Vert": "|", "lVert": "|", "rVert": "|",
    "middle": "", "thinspace": " ", "displaystyle": "", "textstyle": "",
    "quad": " ", "qquad": " ", "$": "$", "%": "%", "#": "#",
    "&": "&", "_": "_", "!": "", ",": " ", ";": " ", ":": " ", " ": " ", ">": " ",
}  # fmt: skip

_COLOR = re.compile(r"\\(?:text)?color\s*\{[A-Za-z0-9!]{1,30}\}\s*")
_SWITCH = re.compile(r"\\(?:[lL]arge|LARGE|[hH]uge|small|bf|bfseries|rm)(?![A-Za-z])\s*|=\s*")
_MEANT = re.compile(r",|\\(?:choose|over|atop|brace)(?![A-Za-z])")  # braces that say something
_STYLE = re.compile(r"\\(?:boldsymbol|bm|pmb|mathbf|mathit|underline)\s*\{(?=.)")
_FORMULA = re.compile(r"(?<!\\)\$(?=\S)((?:[^$\\]|\\.){1,500}?)(?<=\S)\$(?!\d)")
_WORDED = re.compile(
    r"(?:\\[,;:! ]|\\displaystyle|\s)*\\text\s*\{\s*(-?\\?\$?\d[^{}]*)\}(?:\\[,;:! ]|[ .])*"
)  # \text{12 apples}
_UNIT_LETTERS = frozenset("mghlLsNJWVKCMAT")
_SET_BEFORE = re.compile(r"(?:\A|\\in)\s*\Z")  # 17 \mathbf{R} 2 is a quotient with its remainder
_VALUE_BEFORE = re.compile(r"(?:[0-9})]|\\pi)(?:\\[,;: ]|[~\s]){0,4}$")
_COMMAND = re.compile(r"\\([A-Za-z]+|.)", re.DOTALL)
_DIGITS = re.compile(r"[0-9A-Z]{1,20}")
_JOINER = re.compile(
    r"\\text\{\s*,?\s*(?:and|or)\s*,?\s*\}|\\text\{\s?[或且和]\s?\}"
    r"|(?<=[!-~])\s?[或且和](?=\s?[!-~])|(?<![A-Za-z\\{])(?<!hundred )(?<!thousand )"
    r"(?:and|or)(?![A-Za-z}]| a half)"
)
_OPERATOR = re.compile(
    r"\\(?:operatorname\*?|text|mathrm)\s*\{\s*"
    r"(sin|cos|tan|cot|sec(?!\s*\}\s*\Z)|csc|arcsin|arccos|arctan|arccot|(?:arc)?c?tg|a?r?c?(?:sinh|cosh|tanh)"
    r"|ln|log|exp|cis|(?:gcd|lcm|max|min)(?=\s*\}\s*(?:\\left)?\s*\())\s*\}"
)
_THOUSANDS = re.compile(r"(?<![\d.^_])[1-9]\d{0,2}(?:(?:\{,\}|,?\\[,!] ?)\d{3})+(?!\d)")
_HSPACE = re.compile(r"\\hspace\*?\{[^{}]{0,20}\}")
_COMMA_POINT = re.compile(r"(?<=\d)\{,\}(?=\d)")
_GROUPED_FACTOR = re.compile(
    r"-?([1-9]\d{0,2}(?:,\d{3})+)(?=\s*(?:\\(?:pi|sqrt|frac|cdot|times)|[a-z^]))"
)
_SINGLE = (
    r"([A-Za-z\d]|\\(?:pi|theta|alpha|beta|gamma|lambda|mu|omega|phi|sigma|infty)(?![A-Za-z]))"
)
_GROUP = r"\{(?>(?:[^{}]|\{[^{}]*\})*)\}"
_FIRST = re.compile(rf"(\\(?:frac|sqrt(?:\[\d+\])?|binom|hat|vec))\s*{_SINGLE}")
_SECOND = re.compile(rf"(\\(?:frac|binom)\s*{_GROUP})\s*{_SINGLE}")
_COMBINED = re.compile(
    r"(?<![A-Za-z\\])(?:C\(([a-z\d+-]{1,9}), ?([a-z\d+-]{1,9})\)|^(\d{1,3}) ?C ?(\d{1,3})$"
    r"|(?:\{\}|(?<![\w)}]))[_^](?:\{([a-z\d][a-z\d+-]{0,8})\}|(\d{1,9}|[a-z]))"
    r"C_(?:\{([a-z\d][a-z\d+-]{0,8})\}|(\d{1,9}|[a-z]))"
    r"|C_(?:\{([3-9]|\d\d{1,8}|\d?[nmN](?:[+-]\d)?)\}|([3-9]|\d\d{1,8}|[nmN]))"
    r"\^(?:\{(\d{1,9}|[a-z](?:[+-]\d)?)\}|(\d{1,9}|[a-z])))"
)
_PERMUTED = re.compile(r"(?:\{\})?[_^]\{?(\d{1,3})\}?P_\{?(\d{1,3})\}?")
_OF_SET = re.compile(r"(\\(?:max|min|gcd|lcm))\\\{([^{}]*)\\\}")
_HAT = re.compile(
    r"\\(?:hat|mathbf|vec|boldsymbol)(?:\{\\?([ijk])(?:math)?\}| ([ijk])(?![A-Za-z]))"
)  # the unit vectors
_ROW_SPACE = re.compile(r"(?<=\\\\) ?\[-?[\d.]{1,5} ?(?:pt|em|ex|mm|cm)\]")
_REPEATED = re.compile(r"\\(?:dot|overline)\s*(?:\{(\d+)\}|(\d))")
_OPEN_ARRAY = re.compile(  # a brace at the left alone, as cases have it
    r"(?:\\left\s*\\(?:\{|lbrace)\s*\\begin\{array\}\s*\{[clr\s]*\}"
    r"|(?:\\left\s*\\(?:\{|lbrace)\s*)?\\begin\{(aligned|gathered)\})"
    r"((?:(?!\\begin|\\end).)*)\\end\{(?:array|aligned|gathered)\}\s*(?:\\right\s*\.?)?\s*\Z",
    re.DOTALL,
)
_SYSTEM = re.compile(  # of equations
    r"\\begin\{cases\}((?:(?!\\[gl]eq?(?:slant)?(?![A-Za-z])|\\neq?(?![A-Za-z]))[^&<>])*)\\end\{cases\}"
)
_LETTERS_LISTED = re.compile(  # \text{A, C} and \text{II and III only}
    r"^\\text\{ ?([A-Z]{1,4}(?:(?:, ?(?:and )?| and )[A-Z]{1,4})+)"
    r"(?: only)? ?\}\.?$|^\\text\{ ?([A-Z][a-z]+(?:(?:, ?(?:and )?| and )[A-Z][a-z]+)+) ?\}$"
)
_AND_A_HALF = re.compile(  # 2 and a half hours
    r"(?<=\d) ?(?:\\text\{ ?and a half ?\}|and a half$|(\\text\{)? ?and a half )"
)
_BASES = (
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen",
)  # fmt: skip
_PREFIXED = re.compile(r"^(?:\\text\{)?0(?:(?=x[\dA-Fa-f]+|b[01]+)([xb])(\w+))\}?$")
_OPEN_INTERVAL = re.compile(
    r"(?:(?<=\\in )|(?<=\\in)|(?<=\\cup )|(?<=\\cup)|^)([\[\]])([^][(),;]+[,;][^][(),;]+)([\[\]])"
)
_ROUGHLY = re.compile(
    r"(?<=[\d)}\]%])(?:\\text\{|[,\s])*\b(?:or\s+)?(?:about|approximately|roughly)[\s}]+(?=\\?\$?[\d.])"
)
"""``\\sqrt{2}, or about 1.41``."""
_ROUGHLY_ASIDE = re.compile(
    r"(?<=[\w)}\]%])(?:\\text\{)?[\s,]*\((?:\\text\{)?(?:or |which is )?"
    r"(?:about|approximately|roughly|approx\.?|\\approx)[\s}]*(\\?\$?\d[\d.,]*%?)[\s}]*\)\}?$"
)
"""``\\sqrt{2} (about 1.41)``."""
_REALS_EXCEPT = re.compile(
    r"^(?:\\text\{ ?)?(?:all )?real(?:s| numbers) except(?: for)?[ }]+"
    r"(?:[a-z] ?= ?)?([^a-z{}]{1,40})$"
)
_REALS_RULED = re.compile(
    r"^(?:\\text\{ ?)?all real(?:s| numbers)(?: such that| with)?[ }]+"
    r"(?=[a-z] ?(?:[<>]|\\[lgn]e(?![A-Za-z])))"
)
"""``\\text{all real numbers } x \\ge 2``."""
_INTEGERS = re.compile(
    r"^(?:\\text\{ ?)?(?:the set of )?(?:[aA]ll )?(?:the )?(positive |negative )?integers ?\}?$"
)
_OR_ASIDE = re.compile(  # 1/2 (or 0.5)
    r"[\s,]*(?:\\text\{\s*)?\(or[\s}]+([^()]{1,60}?)(?:\)|\\text\{\s*\)\s*\})$"
)
_ENDLESS = re.compile(r"(-?\d*\.)(\d{3,60})(?:\\dots|\.{3}|…)")
_BASE_WORDS = re.compile(
    r"(?<=[0-9A-Z})])(?:_\{?\\text\{ *(?P<word>[a-z]+) *\}\}?"
    r"| ?\(? ?(?:\\text\{ ?\(?)? ?(?:in )?base[- ]?\}? ?(?P<base>[a-z]+|\d{1,2})\)? ?\}?\)?)$"
)


_I_BEFORE = re.compile(r"(?<![A-Za-z_^\\])(?<!_\{)([ij])(\d[\d.]*)(?![\d.^A-Za-z])")  # 3+j4
_PAIR = r"[(\[][^()\[\]]*,[^()\[\]]*[)\]]"
_PARTIAL = re.compile(
    r"\\frac\{\\partial(?:\^\{?\d\}?)? ?([A-Za-z])\}"
    r"\{((?:\\partial ?[a-z](?:\^\{?[2-9]\}?)? ?){1,3})\}"
)
_PARTIAL_NAME = re.compile(r"partial ?([a-z])(?:\^\{?(\d))?")


def _indexed(found: re.Match[str]) -> str:
    r"""Return ``\frac{\partial^2u}{\partial x^2}`` as ``u_{xx}``."""
    by = (name * int(times or 1) for name, times in _PARTIAL_NAME.findall(found[2]))
    return f"{found[1]}_{{{''.join(sorted(''.join(by)))}}}"


def _cases(found: re.Match[str]) -> str:
    rows = found[2].replace("&", "") if found[1] else found[2]
    return f"\\begin{{cases}}{rows}\\end{{cases}}"


def _binomial(found: re.Match[str]) -> str:
    """Normalize ``C(n,k)``, ``{}_nC_k`` and ``C_n^k``."""
    n, k = (part for part in found.groups() if part)
    return f"\\binom{{{n}}}{{{k}}}"


def _in_base(found: re.Match[str]) -> str:
    base = found["word"] or found["base"]
    if not base.isdigit():
        if base not in _BASES:
            return found.group()
        base = str(_BASES.index(base) + 2)
    return f"_{{{base}}}"


def _integers(found: re.Match[str]) -> str:
    return "\\mathbb{Z}" + {"positive ": "_+", "negative ": "_-"}.get(found[1], "")


def _endless(found: re.Match[str]) -> str:
    r"""Return ``0.1666\dots`` as ``0.1666\overline{6}``, if its last digits repeat.

    They stand there three times, or twice and nothing before them: 2.718281828... is e.
    """
    point, digits = found.groups()
    for period in range(1, len(digits) // 2 + 1):
        block = digits[-period:]
        if digits.endswith(block * 3) or (period > 1 and digits == block * 2):
            return f"{point}{digits}\\overline{{{block}}}"
    return found.group()


def _prefixed(found: re.Match[str]) -> str:
    """Return ``0x2A`` as ``2A_{16}``."""
    base = {"x": 16, "b": 2}[found[1]]
    return f"{found[2].upper()}_{{{base}}}"


def _primes(found: re.Match[str]) -> str:
    return "'" * found[1].count("prime")


def _interval(found: re.Match[str]) -> str:
    """Return ``]2,5]`` as ``(2,5]``."""
    left, inside, right = found.groups()
    return f"{'(' if left == ']' else '['}{inside}{')' if right == '[' else ']'}"


def _joined(found: re.Match[str]) -> str:
    return "".join(char for char in found.group() if char.isdigit())


_SHORT_WORDS = "of|or|is|an|in|to|by|as|at|on|if|km|cm|mm|mi|ft|kg|mg|lb|oz|hr"
_COEFFICIENT = re.compile(  # 1/2 x^2, 3/4 pi, 1/2 sin(2x): with the space the fraction is whole
    r"(^|[-+=(,{|]\s*)(\d{1,9})/(\d{1,9}) +"
    rf"(?=(?:\\?(?:{'|'.join(FUNCTIONS)}|sqrt|pi)|(?!{_SHORT_WORDS})[A-Za-z]{{1,2}})(?![A-Za-z])"
    r"|\((?![^()]*[A-Za-z]{3})[^()]*[A-Za-z])"
)
_GREEK_WORD = re.compile(  # of a formula; the words in \text{} are words
    r"\\text\{[^{}]*\}"
    rf"|(?<![A-Za-z\\])({'|'.join(sorted(GREEK - {'ell', 'hbar', 'nu', 'mu', 'xi'}))})(?![A-Za-z])"
)
_FORMULA_SIGN = re.compile(r"[()^=+*/_0-9]")


def _greek(found: re.Match[str]) -> str:
    return f"\\{found[1]} " if found[1] and _FORMULA_SIGN.search(found.string) else found[0]


_TABLE: tuple[tuple[str, re.Pattern[str], Replacement], ...] = (
    # one of what must stand in the text for it, what it looks like, what it becomes
    ("", _GREEK_WORD, _greek),
    ("\\over", re.compile(r"\{([^{}]*)\\over(?![A-Za-z])([^{}]*)\}"), r"\\frac{\1}{\2}"),
    ("\\", _FIRST, r"\1{\2}"),
    ("\\", _SECOND, r"\1{\2}"),
    ("/", _COEFFICIENT, r"\1\\frac{\2}{\3} "),
    ("/dx", re.compile(r"^d([a-z])/dx(?= ?=)"), r"\\frac{d\1}{dx}"),
    ("cbrt", re.compile(r"(?<![A-Za-z\\])cbrt\s*\(([^()]*)\)"), r"\\sqrt[3]{\1}"),
    (" in ", re.compile(r"^([a-z]) in (?=[\[(])"), r"\1\\in "),
    ("log", re.compile(r"(?<![A-Za-z\\])log_?(2|10)\s?(?=\()"), r"\\log_{\1}"),
    (" x 10", re.compile(r"(?<=\d) x (?=10\s?\^)"), r"\\times "),
    ("-", re.compile(r"(?:\^|\*\*) ?(-(?:\d+|[A-Za-z]))(?![\w.^({])"), r"^{\1}"),  # 10^-3
    ("i|j", _I_BEFORE, r"\2\1"),
    ("+", re.compile(r"(?:\A|(?<==)|(?<== ))\+-|\+/-"), r"\\pm "),
    ("inf", re.compile(r"(?<![A-Za-z\\])inf(?![A-Za-z])"), r"\\infty "),
    ("oo", re.compile(r"(?<![A-Za-z\\])oo(?![A-Za-z])"), r"\\infty "),
    ("U", re.compile(rf"({_PAIR})\s?U\s?(?={_PAIR})"), r"\1\\cup "),  # (-oo,1]U(2,3)
    ("(", re.compile(r"(?<![A-Za-z\\])(gcd|lcm|max|min)(?=\()"), r"\\\1"),
    ("(", re.compile(r"(?<![A-Za-z\\])(floor|ceil)\(([^()]*)\)"), r"\\l\1 \2\\r\1 "),
    ("\\partial", _PARTIAL, _indexed),
    ("{}^", re.compile(r"\{\}(?=\^\s*\{?\s*\\circ)"), ""),
    ("\\circ", re.compile(r"\s*\^\s*(?:\{\s*\\circ\s*\}|\\circ)"), "°"),
    ("sqrt", re.compile(r"(?<![A-Za-z\\])sqrt ?(\d+)(?![\d.])"), r"\\sqrt{\1}"),
    ("o", re.compile(r"(?<=\d)\s*\^\s*(?:\{\s*o\s*\}|o)(?![A-Za-z])"), "°"),
    ("°", re.compile(r"\s*\^\s*(?:\{\s*°\s*\}|°)|\s*°"), "°"),
    (
        "\\dot",
        re.compile(r"\\dot\s*\{?(\d)\}?(\d*)\\dot\s*\{?(\d)\}?"),
        r"\\overline{\1\2\3}",
    ),
    ("\\dot|\\overline", _REPEATED, r"\\overline{\1\2}"),
    (
        "\\math",
        re.compile(r"\\math(?:cal|scr) ?\{?([A-Z])(?![A-Za-z])\}?"),
        r" \1",
    ),  # \mathcal{O}(n)
    ("\\mathbb", re.compile(r"\\mathbb\s+([A-Z])"), r"\\mathbb{\1}"),
    (
        "\\",  # \R, n \in N
        re.compile(r"(?:(?<!\\)\\|(?<=\\in)\s?)([ZRNQ])(?![A-Za-z'(])"),
        r"\\mathbb{\1}",
    ),
    ("\\mathbb", re.compile(r"\\mathbb\{Z\}/(\d+|[a-z])\\mathbb\{Z\}"), r"\\mathbb{Z}_{\1}"),
    (
        "\\{",  # (0,2)-\{1\}; the braces of (x+1)-\{x\} may be a fractional part
        re.compile(r"(\\mathbb\{[A-Z]\}|[)\]](?= ?- ?\\\{-?[\d\\])) ?- ?(?=\\\{)"),
        r"\1\\setminus",
    ),
    ("mod", re.compile(r"\\text\{ ?mod ?\}"), r"\\mod "),
    ("pi", re.compile(r"(?:(?<=[\d\s*/(+=-])|^)pi(?![A-Za-z])"), r"\\pi "),
    ("matrix}", re.compile(r"(?<=\{)(?:[bB]?|[bp]?small)matrix\}"), "pmatrix}"),
    (
        "\\begin",
        re.compile(
            r"[(\[]\s*\\begin\{(?:array\}\s*\{[clr|\s]*|pmatrix)\}"
            r"((?:(?!\\begin).)*)\\end\{(?:array|pmatrix)\}\s*[)\]]",
            re.DOTALL,
        ),
        r"\\begin{pmatrix}\1\\end{pmatrix}",
    ),
    ("box", re.compile(r"\\(?:boxed|fbox)(?=\s*\{)"), ""),
    ("\\bigcup", re.compile(r"\\bigcup(?!\s*[_A-Za-z])"), r"\\cup"),
    ("]|[", _OPEN_INTERVAL, _interval),
    ("{Z}", re.compile(r"(?<=\\mathbb\{Z\})(?:\^\{?\+\}?|_\{(?:\+|> ?0|\\ge ?1)\})"), "_+"),
    (",", re.compile(r",\s*\)$"), ")"),  # (5,)
    ("#", re.compile(r"^\\?#\s?(?=\d)"), ""),
    ("_", re.compile(r"(?<=\w)_\{?\((\d{1,2})\)\}?$"), r"_{\1}"),
    ("\\infty", re.compile(r"(^|[(,\[]\s*)\+\s*(?=\\infty)"), r"\1"),
    ("\\prime", re.compile(r"\^\s*\{?((?:\s*\\prime(?![A-Za-z]))+)\s*\}?"), _primes),
    ("sqrt", re.compile(r"(?<![A-Za-z\\])\\?sqrt\s*\(([^()]*)\)"), r"\\sqrt{\1}"),
    ("C", _COMBINED, _binomial),
    ("P", _PERMUTED, r"(\\frac{\1!}{(\1-\2)!})"),
    ("0x|0b", _PREFIXED, _prefixed),
    ("..", re.compile(r",\.{3}"), r",\\dots"),
    ("..|dots", _ENDLESS, _endless),
    ("\\{", _OF_SET, r"\1(\2)"),
    ("hat|mathbf|vec|symbol", _HAT, r"\1\2"),
    ("vec", re.compile(r"\\vec(?=\{[A-Z]{2}\})"), r"\\overrightarrow"),
    ("_|base", _BASE_WORDS, _in_base),
    ("**", re.compile(r"(?<=[\w)}])\*\*(\d+)(?!\*)"), r"^{\1}"),
    ("**", re.compile(r"(?<=[\w)}])\*\*(?=[A-Za-z(])"), "^"),
    ("minus|negative", re.compile(r"^(?:\\text\{ ?)?(?:minus|negative)[ }]+(?=[\d.]|\\frac)"), "-"),
    ("out of", re.compile(r"(?<=\d)(?:\\text\{)? ?out of ?\}? ?(?=\d)"), "/"),
    ("half", _AND_A_HALF, r"\\frac{1}{2}\1"),
    ("\\", re.compile(r"(?:\s*\\(?:checkmark|blacksquare|square|qed)(?![A-Za-z]))+$"), ""),
    ("'", re.compile(r"(?<![\d.'])\d{1,3}(?:'\d{3})+(?![\d'])"), _joined),
    ("(", _ROUGHLY_ASIDE, r"\\approx \1"),
    ("out|ro", _ROUGHLY, r"\\approx "),
    ("except", _REALS_EXCEPT, r"\\mathbb{R}\\setminus\\{\1\\}"),
    ("\\text", _LETTERS_LISTED, r"\1\2"),
    ("(or", _OR_ASIDE, r" or \1"),
    ("y(", re.compile(r"^y\([xt]\)(?=\s*=)"), "y"),
    ("\\", re.compile(r"\\wedge(?![A-Za-z])(?=.*(?:[<>]|\\[lg]e(?![A-Za-z])))"), " , "),
    ("and|or|或|且|和", _JOINER, " , "),
    (",", re.compile(r"(?<=\d)(?:\s+,\s*|,\s+)(?=\d)"), ";"),  # 1, 234 is a list
    ("比", re.compile(r"(?<=\d)\s?比\s?(?=\d)"), ":"),
    ("度", re.compile(r"(?<=\d)\s?度\Z"), "°"),
    ("%", re.compile(r"\\text\{\s?\\?%\s?\}"), "%"),
    ("<", re.compile(r"^<([^<>]+,[^<>]+)>$"), r"(\1)"),
    ("a", re.compile(r"(?<![A-Za-z\\])a(?=(?:sin|cos|tan)\s?\()"), r"\\arc"),
    ("real", _REALS_RULED, ""),
    ("{R}", re.compile(r"^[a-z]\\in ?\\mathbb\{R\}[,;:]\s*(?=[a-z] ?(?:[<>]|\\[lgn]e))"), ""),
    ("integers", _INTEGERS, _integers),
    ("_{", re.compile(r"(?<=[A-Za-z])_\{\s?(\w)\s?\}(?!\d)"), r"_\1"),
    (" |\n", re.compile(r"\s+"), " "),
    (",", re.compile(r",(?:\s*,)+"), ","),
)
_FIXES = tuple((needle, form, to) for needles, form, to in _TABLE for needle in needles.split("|"))
PLAIN = re.compile(r"-?\d{1,18}(?:\.\d{1,18})?", re.ASCII)
_IDLE_SPACE = re.compile(
    r"(?<![A-Za-z0-9]) | (?![A-Za-z0-9])|(?<=[0-9]) (?=[A-Za-z])|(?<=[A-Za-z]) (?=[0-9])"
)
_BRACKET = re.compile(r"\\.|[][(){}]", re.DOTALL)
_LINE_BREAK = re.compile(r"\\\\\s+(?=\(|[A-Za-z](?:_\{?\w\}?)?\s?=)")  # x=1 \\ y=2
_QUOTED = re.compile(r"['\"“]([^'\"“”]+)['\"”]")
_DOUBLED = re.compile(r"\\\\(?=[a-z{}])")


@functools.lru_cache(maxsize=4096)
def normalized(text: str) -> str:
    """Return :func:`respell` and :func:`squeeze`, cached, because references repeat."""
    return squeeze(respell(text))


def respell(text: str) -> str:
    r"""Normalize a short piece of LaTeX.

    Delimiters around the whole, ``\left`` and spacing commands go; ``and`` and ``or`` between
    values become commas; words stay inside ``\text{...}``, single letters come out of it.
    """
    if PLAIN.fullmatch(text):
        return text
    text = _OPEN_ARRAY.sub(_cases, text) if "\\begin" in text else text
    if "{cases}" in text:
        text = _SYSTEM.sub(lambda found: re.sub(r"\\\\", ",", found[1]), text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        text = _RAISED_SIGN.sub(lambda sign: "-" if sign[0] == "⁻" else "", text)
        text = _ROOT_OF.sub(lambda found: f"\\sqrt{'[3]' * (found[1] == '∛')}{{{found[2]}}}", text)
        text = _RAISED_RUN.sub(lambda run: f"^{{{run.group().translate(_RAISED)}}}", text)
        text = _COUNTED.sub("", text)
        text = _UNIT_ABROAD.sub(lambda unit: f"\\text{{ {_UNITS_ABROAD[unit[2]]}}}", text)
        text = _CIRCLED_RUN.sub(r"\g<0>,", text)  # what follows one another is a list
    if "\\\\[" in text or "\\\\ [" in text:
        text = _ROW_SPACE.sub("", text)
    if "\\\\" in text and "\\begin" not in text:
        text = _LINE_BREAK.sub(",", text)
    if "\\begin" not in text:  # where "\\\\" is no row end it is a backslash escaped twice
        text = _DOUBLED.sub(r"\\", text)
    text = _unstyled(strip_math_delimiters(text.translate(_CHARACTERS).strip()))
    if quoted := _QUOTED.fullmatch(text):
        text = quoted[1]
    if "$" in text:  # $12$ cm
        text = _FORMULA.sub(r"\1", text)
    text = _commanded(text) if "\\" in text or "{" in text else text
    text = text.replace("~", " ").strip()
    grouped = _GROUPED_FACTOR.match(text) if "," in text else None
    if grouped and text.count(",") == grouped.group(1).count(","):  # 10,000\pi is no list
        text = text.replace(",", "")
    for written, meant in (("<=", r"\le "), (">=", r"\ge "), ("!=", r"\ne "), ("{-}", "-")):
        text = text.replace(written, meant)
    for needle, pattern, replacement in _FIXES:
        if needle in text:
            text = pattern.sub(replacement, text)
    return text.strip(" ,;").rstrip(".;, \\")


def _commanded(text: str) -> str:
    """Normalize the spelling of commands."""
    if "{,}" in text or "\\," in text or "\\!" in text:
        text = _COMMA_POINT.sub(".", _THOUSANDS.sub(_joined, text))
    text = text.replace(",\\!", ",").replace("\\text{:}", ":").replace("{:}", ":")
    text = text.replace("\\quad", " ").replace("\\qquad", " ")
    text = _HSPACE.sub(" ", text) if "\\" in text else text
    worded = _WORDED.fullmatch(text)
    text = worded.group(1) if worded else text
    return _COMMAND.sub(_respelled, TEXT.sub(_unwrapped_letter, _OPERATOR.sub(r"\\\1 ", text)))


def _unstyled(text: str) -> str:
    r"""Remove colour, size, a leading ``=``, and an enclosing ``\boldsymbol{...}``."""
    text = _COLOR.sub("", text) if "color" in text else text
    while text[:1] in {"\\", "{", "="}:
        switched, styled = _SWITCH.match(text), _STYLE.match(text)
        if switched:
            text = text[switched.end() :]
            continue
        inside = text[styled.end() if styled else 1 : -1]
        # A vector's name stays as it is.
        kept = inside.isalpha() if styled else _MEANT.search(inside) and not _SWITCH.match(inside)
        if text[-1] != "}" or kept or not (styled or text[0] == "{") or not is_balanced(inside):
            break
        text = strip_math_delimiters(inside.strip())
    return text


def _unwrapped_letter(found: re.Match[str]) -> str:
    content = found.group(1).strip()
    indexed = found.string[found.end() : found.end() + 1] == "_"  # \mathrm{C}_5^2
    before = found.string[: found.start()]
    value = _VALUE_BEFORE.search(before)
    if content in _UNIT_LETTERS and value and not indexed:
        return "\\text{" + content + "}"  # 5\text{ m} is a length, 5m a product
    if content == "\\$":
        return content
    if "mathbf" in found[0] and content in {"Z", "R", "N", "Q"} and _SET_BEFORE.search(before):
        return f"\\mathbb{{{content}}}"
    if len(content) == 1 or content.isdigit():  # \mathrm{i}, \text{B}, _{\text{5}}
        joined = content.isalpha() and before[-1:].isalpha()
        return f" {content}" if joined else content  # \cdot\text{s} is not \cdots
    if _DIGITS.fullmatch(content) and indexed:
        return content  # \text{2A}_{16}
    if re.fullmatch(r"\([A-Z]\)", content):
        return content
    return "\\text{" + found.group(1) + "}"


def _respelled(found: re.Match[str]) -> str:
    return _SPELLING.get(found.group(1), found.group())


def squeeze(text: str) -> str:
    """Remove spaces from a respelled text, except those between two digits or two letters."""
    return _IDLE_SPACE.sub("", text) if " " in text else text


MAX_NESTING = 60


def is_balanced(text: str, deepest: int = MAX_NESTING) -> bool:
    r"""Return whether every ``{`` has its ``}``, nested at most so deep.

    Escaped braces do not count as braces; readers of brackets recurse, so depth is bounded.
    """
    braces = nesting = 0
    for token in _BRACKET.finditer(text):
        mark = token.group()
        braces += (mark == "{") - (mark == "}")
        nesting += (mark[-1] in "([{") - (mark[-1] in ")]}")
        if braces < 0 or nesting > deepest:
            return False
    return braces == 0


_MINUS = re.compile(r"(?<=[)}\w])-")


def split_terms(text: str) -> list[str]:
    """Split a sum into its terms, each with its minus, outside all brackets."""
    return split_top(_MINUS.sub("+-", text), "+")


def split_top(text: str, separators: str) -> list[str]:
    """Split a text at separators outside all brackets."""
    parts, start, depth, i = [], 0, 0, 0
    while i < len(text):
        char = text[i]
        if char == "\\":
            depth += {"{": 1, "}": -1}.get(text[i + 1 : i + 2], 0)
            i += 2
            continue
        depth += (char in "([{") - (char in ")]}")
        if depth <= 0 and char in separators:
            parts.append(text[start:i])
            start = i + 1
        i += 1
    return [*parts, text[start:]]
