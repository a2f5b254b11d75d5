"""A policy to evaluate, as a Python function.

assay eval assay/Arithmetic-v1 --policy examples.policy:hasty -n 8 --limit 100 --out runs/e
"""

import random


def hasty(messages, seed):
    """Add two numbers, forget to carry now and then, and sometimes say nothing of use."""
    a, b = map(int, messages[-1]["content"].removesuffix("=").split("+"))
    mood = random.Random(seed).random()  # noqa: S311  # no secret, and the same for the same seed
    if mood < 0.1:
        return "That is hard to say."
    return str(a + b if mood < 0.6 else (a + b) % 10 + 10 * (a // 10 + b // 10))


if __name__ == "__main__":
    print(hasty([{"role": "user", "content": "17+25="}], seed=1))
