"""Judge an antiderivative and some JSON: every right answer wins, and a reason says why not."""

# --8<-- README
from assay.verifiers import Integral, JsonSchema

problem = {"integrand": r"x\cos x", "variable": "x"}
print(Integral().verify(r"\boxed{x\sin x + \cos x + C}", problem).score)  # 1.0

ages = JsonSchema({"type": "object", "required": ["age"], "properties": {"age": {"minimum": 0}}})
print(ages.verify('{"age": -1}', None).reason)
# --8<--

assert Integral().verify(r"\boxed{x\sin x}", problem).score == 0.0
assert ages.verify('{"age": 41}', None).score == 1.0
