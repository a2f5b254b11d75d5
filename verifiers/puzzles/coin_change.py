"""Coin change: do the fewest coins make the amount?"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..shown import shown
from .any_answer import AnyAnswer
from .subset_sum import numbers_of

MAX_AMOUNT = 20_000


class CoinChange(AnyAnswer):
    r"""Accept any of the shortest lists of coins that make the amount.

    Coins may be used any number of times. They are parted by commas, blanks, lines or ``+``, or
    are a JSON list; ``= amount`` may follow.

    Reference: ``{"coins": [1, 5, 8], "amount": 10}``. An amount that no coins make is refused.

    Example:
        >>> change = {"coins": [1, 5, 8], "amount": 10}
        >>> [CoinChange().verify(reply, change).score for reply in ("5 + 5", "8, 1, 1")]
        [1.0, 0.0]
    """

    def check_reference(self, reference: Any) -> str | None:
        """Coins, and an amount that they make."""
        if not isinstance(reference, dict) or {"coins", "amount"} - set(reference):
            return f"expected coins and amount, got {shown(reference)}"
        coins, amount = reference["coins"], reference["amount"]
        if not isinstance(coins, list) or not 1 <= len(coins) <= 20:
            return f"coins must be a list of 1 to 20 numbers, got {shown(coins)}"
        for number in [*coins, amount]:
            if type(number) is not int or not 1 <= number <= MAX_AMOUNT:
                return f"coins and amount must be from 1 to {MAX_AMOUNT}, got {shown(number, 60)}"
        if len(set(coins)) < len(coins):
            return f"coins must differ, got {shown(coins)}"
        made = fewest_coins(tuple(coins), amount)
        return None if made else f"no coins of {coins} make {amount}"

    def winning_reply(self, reference: Any) -> str | None:
        """One of the shortest lists."""
        return ", ".join(map(str, fewest_coins(tuple(reference["coins"]), reference["amount"])))

    def fault(self, text: str, reference: Any) -> str | None:
        """Add up, and count."""
        coins, amount = reference["coins"], reference["amount"]
        left, equals, right = text.partition("=")
        if equals and numbers_of(right) != [amount]:
            return f"says {shown(right.strip(), 40)} where the amount is {amount}"
        given = numbers_of(left)
        if unknown := set(given) - set(coins):
            return f"there is no coin of {min(unknown)}"
        if sum(given) != amount:
            return f"makes {sum(given)}, not {amount}"
        least = len(fewest_coins(tuple(coins), amount))
        return f"takes {len(given)} coins where {least} are enough" if len(given) > least else None


@lru_cache(maxsize=256)
def fewest_coins(coins: tuple[int, ...], amount: int) -> tuple[int, ...]:
    """The fewest coins, empty where none make the amount: for each smaller amount, the last one."""
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
