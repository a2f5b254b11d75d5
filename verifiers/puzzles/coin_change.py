"""Coin change: do the fewest coins make the amount?"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..validation import safe_repr
from .puzzle import BadReference, PuzzleVerifier, check_list, check_whole, fields
from .subset_sum import addends

MAX_AMOUNT = 20_000


class CoinChange(PuzzleVerifier):
    r"""Accept any of the shortest lists of coins that make the amount.

    Coins may be used any number of times. They are parted by commas, blanks, lines or ``+``, or
    are a JSON list; ``= amount`` may follow.

    Reference: ``{"coins": [1, 5, 8], "amount": 10}``. An amount that no coins make is refused.
    """

    def check(self, reference: Any) -> None:
        """Check that the coins make the amount."""
        coins, amount = fields(reference, "coins", "amount")
        check_list("coins", coins, 1, 20, "numbers")
        for number in [*coins, amount]:
            check_whole("coins and amount", number, 1, MAX_AMOUNT)
        if len(set(coins)) < len(coins):
            raise BadReference(f"coins must differ, got {safe_repr(coins)}")
        if not fewest_coins(tuple(coins), amount):
            raise BadReference(f"no coins of {coins} make {amount}")

    def oracle_reply(self, reference: Any) -> str | None:
        return ", ".join(map(str, fewest_coins(tuple(reference["coins"]), reference["amount"])))

    def fault(self, text: str, reference: Any) -> str | None:
        coins, amount = reference["coins"], reference["amount"]
        given, wrong = addends(text, amount)
        if wrong is not None:
            return wrong
        if unknown := set(given) - set(coins):
            return f"there is no coin of {min(unknown)}"
        if sum(given) != amount:
            return f"makes {sum(given)}, not {amount}"
        least = len(fewest_coins(tuple(coins), amount))
        return f"takes {len(given)} coins, {least} suffice" if len(given) > least else None


@lru_cache(maxsize=256)
def fewest_coins(coins: tuple[int, ...], amount: int) -> tuple[int, ...]:
    """Return the fewest coins, none if none make the amount: by the last coin of each amount."""
    count, last = [0] + [amount + 1] * amount, [0] * (amount + 1)
    for total in range(1, amount + 1):
        for coin in coins:
            if coin <= total and count[total - coin] + 1 < count[total]:
                count[total], last[total] = count[total - coin] + 1, coin
    if count[amount] > amount:
        return ()
    found = []
    while amount:
        found.append(last[amount])
        amount -= last[amount]
    return tuple(found)
