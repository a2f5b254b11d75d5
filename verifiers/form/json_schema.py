"""JsonSchema: does the answer satisfy a JSON Schema?"""

from __future__ import annotations

from typing import Any

from ..verdict import Verdict
from ..verifier import Verifier
from .json_text import find_json
from .schema_cache import SchemaFault, schema_of


class JsonSchema(Verifier):
    r"""Full marks for a JSON object or array that is valid under a schema (Draft 2020-12).

    The value is read strictly, as by :class:`~assay.verifiers.form.json_value.Json`. ``{}`` and
    ``[]`` always fail, and so does a value on which validation takes more than 200,000 steps: steps
    are counted, not seconds, so the verdict is the same everywhere.

    A schema is refused when data is loaded if it is invalid; refers to anything but itself (nothing
    is ever fetched); recurses without end; has a pattern that RE2 does not support (so that every
    pattern takes linear time); or accepts any object or any array, which would pay for junk: add
    ``required``, or forbid ``additionalProperties``. ``multipleOf`` is exact on decimals.

    Reference: the schema, if the constructor has none; else ignored.

    Args:
        schema: one for all tasks.
        formats: check ``format``: date, time, date-time, ipv4, ipv6, uuid, email and
            uri; a schema with another is refused.
        only: allow nothing around the value, neither fence nor tags nor words.

    Raises:
        ValueError: the schema is refused.

    Example:
        >>> schema = {"type": "object", "required": ["age"],
        ...           "properties": {"age": {"type": "integer", "minimum": 0}}}
        >>> JsonSchema().verify('{"age": 36}', schema).score
        1.0
        >>> JsonSchema().verify('{"age": true}', schema).reason
        "at age: True is not of type 'integer'"
    """

    def __init__(
        self,
        schema: dict[str, Any] | None = None,
        *,
        formats: bool = False,
        only: bool = False,
    ) -> None:
        self.schema, self.formats, self.only = schema, formats, only
        if schema is not None:
            schema_of(schema, formats).refuse_junk()

    def check_reference(self, reference: Any) -> str | None:
        """Require a schema that is not refused for one of the reasons above."""
        try:
            schema_of(self._schema(reference), self.formats).refuse_junk()
        except SchemaFault as fault:
            return str(fault)
        return None

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply."""
        found = find_json(reply, only=self.only)
        if found.text is None:
            return Verdict.unparseable(found.reason)
        if not isinstance(found.value, dict | list) or not found.value:
            return Verdict.wrong("no object or array with anything in it", extracted=found.text)
        wrong = schema_of(self._schema(reference), self.formats).fault(found.value)
        if wrong is not None:
            return Verdict.wrong(wrong, extracted=found.text)
        return Verdict.correct("valid", extracted=found.text)

    def _schema(self, reference: Any) -> Any:
        return reference if self.schema is None else self.schema
