"""A policy to evaluate, as a Python function of one conversation.

assay eval assay/Arithmetic-v1 --policy examples.policy:careful -n 8 --limit 100 --out runs/e
"""


def careful(messages):
    """Add two numbers."""
    a, b = map(int, messages[-1]["content"].removesuffix("=").split("+"))
    return str(a + b)


if __name__ == "__main__":
    print(careful([{"role": "user", "content": "17+25="}]))
