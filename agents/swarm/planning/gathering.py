"""Words the questions for the facts that workers need and that nobody has given yet."""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, JsonValue

from agents.swarm.planning.fields import FieldType, RequiredInfoField, TypedQuestion


class CollectedInfo(BaseModel, frozen=True, extra="forbid"):
    """The facts that were given, by field, and the questions for those that were not."""

    values: dict[str, JsonValue] = {}
    questions: tuple[TypedQuestion, ...] = ()


def gather(
    fields: Mapping[str, Sequence[RequiredInfoField]],
    known: Mapping[str, JsonValue],
    said: Sequence[str] = (),
) -> CollectedInfo:
    """Return the facts that are known, and one list of questions for the others.

    `fields` are those of each worker, by its id: a field that several workers need is asked once. A
    choice that the user has named, and no other one of it, in a message (`said`) is not asked for.
    """
    values = dict(known)
    asked: dict[str, TypedQuestion] = {}
    for worker_id, own in fields.items():
        for field in own:
            if field.name not in values:
                named = _find_choice(field, said)
                if named is not None:
                    values[field.name] = named
            if field.name in values:
                continue
            if field.required:
                asked[field.name] = _ask(asked.get(field.name), field, worker_id)
            elif field.default is not None:
                values[field.name] = field.default
    return CollectedInfo(values=values, questions=tuple(asked.values()))


def _find_choice(field: RequiredInfoField, said: Sequence[str]) -> str | None:
    """Return the only choice that the newest message with one names; None: none does."""
    if field.type is not FieldType.CHOICE:
        return None
    for text in reversed(said):
        words = f" {' '.join(text.casefold().split())} "
        named = [one for one in field.choices if f" {one.casefold()} " in words]
        if named:
            return named[0] if len(named) == 1 else None
    return None


def _ask(known: TypedQuestion | None, field: RequiredInfoField, worker_id: str) -> TypedQuestion:
    if known is not None:
        return known.model_copy(update={"workers": (*known.workers, worker_id)})
    return TypedQuestion(
        id=field.name,
        text=field.question,
        field=field,
        suggestions=field.choices[:5],
        workers=(worker_id,),
    )
