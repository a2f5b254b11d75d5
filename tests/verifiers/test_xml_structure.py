import random
import xml.etree.ElementTree as ElementTree
from typing import Any

from assay.verifiers import XmlStructure

GOOD = "<plan>a</plan><steps><step>b</step><step>c</step></steps><answer>d</answer>"


def test_nesting_is_bounded() -> None:
    deep: Any = ["a"]
    for _ in range(5000):
        deep = [{"a": deep}]
    assert "at most 10 deep" in str(XmlStructure().check_reference(deep))


def random_model(rng: random.Random, depth: int) -> list[Any]:
    model: list[Any] = []
    for name in rng.sample("abcd", rng.randint(1, 3)):
        key = name + rng.choice(["", "", "?", "+", "*"])
        model.append({key: random_model(rng, depth - 1)} if depth and rng.random() < 0.4 else key)
    return model


def nearly(rng: random.Random, model: list[Any]) -> str:
    """Elements that often fit a model, and often just fail to."""
    found = []
    for item in model:
        key, inner = next(iter(item.items())) if isinstance(item, dict) else (item, None)
        for _ in range(rng.choice([1] * 8 + [0, 2])):
            text = rng.choice(["x"] * 8 + ["", " "]) if inner is None else nearly(rng, inner)
            found.append(f"<{key[0]}>{text}</{key[0]}>")
    if rng.random() < 0.1:
        found.reverse()
    return rng.choice(["", "", "", " ", "\n", "x"]).join(found)


def fits(element: ElementTree.Element, model: list[Any] | None) -> bool:
    """The same rules on the tree of a real parser: every way to share the children out is tried."""
    text = "".join([element.text or "", *(child.tail or "" for child in element)])
    if model is None:
        return len(element) == 0 and "x" in text
    return text.strip() == "" and len(element) > 0 and shared(list(element), model)


def shared(children: list[ElementTree.Element], model: list[Any]) -> bool:
    if not model:
        return not children
    item = model[0]
    key, inner = next(iter(item.items())) if isinstance(item, dict) else (item, None)
    name, sign = key.rstrip("?+*"), key[1:]
    for count in range(len(children) + 1):
        if (sign in ("", "+") and count == 0) or (sign in ("", "?") and count > 1):
            continue
        taken = children[:count]
        if all(child.tag == name and fits(child, inner) for child in taken) and shared(
            children[count:], model[1:]
        ):
            return True
    return False


def test_verdicts_are_those_of_a_parser_and_brute_force() -> None:
    rng = random.Random(0)  # noqa: S311  # test inputs, not secrets
    xml = XmlStructure()
    fitting = 0
    for _ in range(4000):
        model = random_model(rng, 2)
        if xml.check_reference(model) is not None:
            continue  # nothing in it is needed
        assert xml.verify(str(xml.oracle_reply(model)), model).score == 1.0
        reply = nearly(rng, model)
        root = ElementTree.fromstring(f"<root>{reply}</root>")  # noqa: S314  # made above
        expected = fits(root, model)
        assert xml.verify(reply, model).score == float(expected), (model, reply)
        fitting += expected
    assert 500 < fitting < 3500
