"""Names of places that two constraints ask for, by their spellings: plain letters, one case."""

from __future__ import annotations

_COUNTRIES = (
    "algeria", "angola", "benin", "botswana", "burkina faso", "burundi", "cameroon/cameroun",
    "cape verde/cabo verde/cabo verde cape verde/cape verde cabo verde",
    "central african republic", "chad", "comoros",
    "congo/republic of the congo/republic of congo/congo brazzaville/congo republic of the/"
    "congo republic/congo republic of",
    "democratic republic of the congo/democratic republic of congo/dr congo/congo kinshasa/"
    "congo democratic republic of the/congo democratic republic/congo dr/drc/"
    "democratic republic of the congo drc",
    "djibouti", "egypt", "equatorial guinea", "eritrea",
    "eswatini/swaziland/eswatini swaziland/eswatini formerly swaziland", "ethiopia", "gabon",
    "gambia", "ghana", "guinea", "guinea bissau", "kenya", "lesotho", "liberia", "libya",
    "madagascar", "malawi", "mali", "mauritania", "mauritius", "morocco", "mozambique", "namibia",
    "niger", "nigeria", "rwanda",
    "ivory coast/cote divoire/ivory coast cote divoire/cote divoire ivory coast",
    "sao tome and principe", "senegal", "seychelles", "sierra leone", "somalia", "south africa",
    "south sudan", "sudan", "tanzania", "togo", "tunisia", "uganda", "zambia", "zimbabwe",
)  # fmt: skip
AFRICA = {name: k for k, names in enumerate(_COUNTRIES) for name in names.split("/")}
"""The 54 countries of Africa by name; spellings of one share a number."""

_FROM_NORTH = (  # latitudes from 64.1 to 45.8 degrees
    "reykjavik", "helsinki", "oslo", "tallinn", "stockholm", "riga", "moscow", "copenhagen",
    "vilnius", "minsk", "dublin", "berlin", "amsterdam", "warsaw", "london",
    "astana/nur sultan", "brussels", "kyiv/kiev", "prague", "luxembourg/luxembourg city", "paris",
    "vienna", "bratislava", "budapest", "vaduz", "chisinau", "bern/berne", "ljubljana", "zagreb",
)  # fmt: skip
CAPITALS = {name: k for k, names in enumerate(_FROM_NORTH) for name in names.split("/")}
"""The capitals of Europe's countries north of 45 degrees, numbered from north to south."""

OPTIONAL_CAPITALS = frozenset([CAPITALS["astana"]])
"""Kazakhstan lies in Europe in part."""
