"""Decides for each requirement whether the reviewed documents fulfil or violate it."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from pydantic import BaseModel, Field

from agents.agent import AgentRole, ProgressStep
from agents.review.measures import compare_measures
from agents.review.passages import (
    DocumentUnits,
    PassageSearch,
    RulePassage,
    cut_document,
    cut_passages,
    divide_sizes,
    join_digests,
    list_units,
    name_documents,
)
from agents.review.requirements import (
    Extraction,
    Requirement,
    RuleKind,
    TextPlace,
)
from agents.review.specialist import (
    BatchOutputs,
    LoopReads,
    LoopWrites,
    NoOutput,
    ReadsScope,
    SpecialistAgent,
)
from agents.review.verdicts import (
    DecidedPart,
    ReadClauses,
    ReviewResult,
    RuleVerdict,
    Status,
    VerdictEvidence,
    compress_requirements,
    join_decisions,
)
from envelope.outcome import Wrote
from envelope.role import Role
from envelope.specialists import (
    PartPlan,
    SpecialistError,
    StoredChecklist,
    StoredPart,
    StoredVerdicts,
)
from llm.tasks.review import (
    COMPLIANCE,
    ClauseReading,
    ComparedMeasures,
    ComplianceInputs,
    ComplianceOutput,
    RequirementVerdict,
)

_CLAUSE_ROUNDS, _ROUNDS = 2, 4
"""Parts without a result are retried once: the clauses first, then the requirements."""
_CLAUSES, _RULES = "c", "r"
"""The prefixes of the keys of parts."""
_PART_ITEMS, _PART_CHARACTERS = 10, 5_000
_CLAUSE_ITEMS, _CLAUSE_CHARACTERS = 40, 12_000
_MOST_PARTS = 100
_WHOLE_CHARACTERS = 24_000
"""A document of at most this many characters is shown in full."""
_RULE_CHARACTERS = 16_000
"""If all requirements together have at most this many characters, all of them are compared with
each clause.
"""
_PER_TEXT, _MOST_SHOWN = 6, 60
_CLOSEST = 3
_COMPARED = 2
_NO_EVIDENCE = (
    "the model's verdict was {status}, but it named no passage that exists, so it does not count"
)
_NO_VERDICT = "the model gave no verdict"
_TOO_LATE = "there was no verdict in time"
_NOT_VERBATIM = (
    "{name}: a quotation is not in its passage word for word, so the whole passage is shown"
)


class Reads(LoopReads, ReadsScope, frozen=True):
    """The checklist and the documents; in a branch, the clauses or requirements to read."""

    checklist: StoredChecklist | None = None
    part: PartPlan | None = None
    part_plan: tuple[PartPlan, ...] = ()
    part_round: int = 0
    stored_parts: dict[str, StoredPart] = Field({})

    def has_result(self, part: PartPlan) -> bool:
        """Return whether a part has a result; a part that failed or did not finish in time has
        none.
        """
        stored = self.stored_parts.get(part.key)
        return stored is not None and not stored.failure

    def list_open(self, parts: Sequence[PartPlan]) -> tuple[PartPlan, ...]:
        """Return the parts that can be read in a further round."""
        refused = {key for key, stored in self.stored_parts.items() if stored.is_refused}
        return tuple(
            part for part in parts if not self.has_result(part) and part.key not in refused
        )


class Writes(LoopWrites, frozen=True):
    """The parts to read, the result of a part, or the verdicts from all parts."""

    verdicts: StoredVerdicts | None = None
    part_plan: tuple[PartPlan, ...] = ()
    part_round: int = 0
    stored_parts: dict[str, StoredPart] = Field({})


@dataclass(frozen=True)
class _Material:
    """The requirements of a review, and the passages of its documents."""

    rules: tuple[Requirement, ...]
    documents: tuple[DocumentUnits, ...]
    passages: tuple[RulePassage, ...]
    law_languages: Mapping[str, str]

    @cached_property
    def search(self) -> PassageSearch:
        """A search in the passages."""
        return PassageSearch(self.passages)

    @property
    def named(self) -> tuple[BaseModel, ...]:
        """All requirements and passages, whose ids a model may repeat from other outputs."""
        return (*compress_requirements(self.rules), *(passage.unit for passage in self.passages))

    @property
    def digest(self) -> str:
        """The digest of the content of the documents."""
        return join_digests(self.documents)

    @property
    def language(self) -> str:
        """The language of the documents, which is the language of the first one."""
        return self.documents[0].language if self.documents else "en"

    def language_of(self, rule: Requirement) -> str:
        """Return the language of a requirement, which is the language of its law."""
        return self.law_languages.get(rule.place.document_id, "en")

    def find_closest(self, rule: Requirement, most: int) -> tuple[RulePassage, ...]:
        """Return the passages closest to a requirement, and to the wordings that fulfil or violate
        it.
        """
        # The statement is in the reader's language, the quotation in that of the law. The article
        # number is not used: the clause with that number is about something else.
        heading = (word for heading in rule.place.heading_path for word in heading.split())
        named = (word for word in heading if any(sign.isalpha() for sign in word))
        asked = " ".join((*named, rule.quotation))
        passages = [
            self.search.find(asked, self.language_of(rule), most, _read_subject(rule.place))
        ]
        passages += [self.search.find(wording, self.language, most) for wording in rule.wordings]
        return tuple({passage.id: passage for own in passages for passage in own}.values())


def _read_subject(place: TextPlace) -> str:
    """Return the heading above a rule, without its number."""
    words = place.heading_path[-1].split() if place.heading_path else []
    return " ".join(word for word in words if word.isalpha())


class ComplianceAgent(SpecialistAgent[Reads, Writes]):
    """Compares documents with requirements, using a model, in both directions: first each clause
    with the requirements, then each requirement with the clauses.

    For the verdict, the model also receives the results of the first step, and a comparison of the
    numbers in both texts. Evidence is an existing passage, quoted word for word; a status without
    evidence is discarded. Without a model, nothing is decided, and each requirement is shown with
    the passages closest to it.
    """

    role = Role.COMPLIANCE
    step = ProgressStep.CHECK
    model_task = COMPLIANCE
    agent_role = AgentRole.VERIFY
    reads = Reads
    writes = Writes

    async def examine(self, reads: Reads) -> Wrote[Writes]:
        problem = _find_problem(reads)
        if problem or reads.checklist is None:
            return Wrote(Writes(errors=(self.toolbox.make_error(problem),)))
        material = await self._collect(reads, reads.checklist)
        if not material.passages:
            text = "the document to review contains no text"
            return Wrote(Writes(errors=(self.toolbox.make_error(text),)))
        if self.toolbox.is_offline:
            result = await asyncio.to_thread(_show_closest, material)
            return Wrote(Writes(verdicts=await self._store(result, material, reads, ())))
        self.toolbox = replace(self.toolbox, known=material.named)
        if reads.part is not None:
            return Wrote(await self._read_part(reads, reads.part, material))
        if (divided := await self._divide(reads, material)) is not None:
            return Wrote(divided)
        return Wrote(await self._join(reads, material))

    async def _collect(self, reads: Reads, checklist: StoredChecklist) -> _Material:
        names = [document.document_id for document in reads.scope.documents]
        read = await self.toolbox.read_documents(names, reads.groups)
        documents = tuple(map(cut_document, read))
        extraction = await self.toolbox.load(checklist.reference, Extraction)
        languages = {document.document_id: document.language for document in reads.scope.against}
        passages = cut_passages(list_units(documents))
        return _Material(extraction.rules, documents, passages, languages)

    async def _divide(self, reads: Reads, material: _Material) -> Writes | None:
        """Return the parts that still have to be read, with all clauses first, or None if there are
        none.
        """
        clauses = _plan_clauses(material)
        missing = reads.list_open(clauses)
        if missing and reads.part_round < _CLAUSE_ROUNDS:
            return Writes(part_plan=missing, part_round=reads.part_round + 1)
        rules = _plan_rules(material)
        missing = reads.list_open(rules)
        if not missing or reads.part_round >= _ROUNDS:
            return None
        readings, notes = await self._load_readings(reads)
        reference = await self.toolbox.store(ReadClauses(readings=readings, notes=notes))
        return Writes(
            part_plan=tuple(plan.model_copy(update={"reference": reference}) for plan in missing),
            part_round=reads.part_round + 1,
        )

    async def _load_readings(
        self, reads: Reads
    ) -> tuple[tuple[ClauseReading, ...], tuple[str, ...]]:
        stored = reads.stored_parts
        read = [stored[key] for key in sorted(stored) if key.startswith(_CLAUSES)]
        loaded = [
            await self.toolbox.load(stored_part.reference, ReadClauses)
            for stored_part in read
            if not stored_part.failure
        ]
        readings = tuple(reading for part in loaded for reading in part.readings)
        return readings, tuple(dict.fromkeys(note for part in loaded for note in part.notes))

    async def _read_part(self, reads: Reads, part: PartPlan, material: _Material) -> Writes:
        if part.digest != material.digest:
            text = f"the document changed while it was read: {part.label}"
            return Writes(errors=(self.toolbox.make_error(text),))
        if part.key.startswith(_CLAUSES):
            return await self._read_clauses(reads, part, material)
        return await self._decide(reads, part, material)

    async def _read_clauses(self, reads: Reads, part: PartPlan, material: _Material) -> Writes:
        own = material.passages[part.first : part.last + 1]
        rules = await asyncio.to_thread(_choose_rules, own, material)
        inputs = self._make_inputs(reads, rules, own, material).model_copy(
            update={"direction": "clauses"}
        )
        given = await self.toolbox.consult_each(COMPLIANCE, (inputs,), None, reads, by="passages")
        if not given.outputs:
            return _fail_part(part, given)
        names, ids = {passage.id for passage in own}, {rule.id for rule in rules}
        clauses = ReadClauses(
            readings=tuple(
                reading
                for output in given.outputs
                for reading in output.readings
                if reading.passage in names and reading.requirement_id in ids
            ),
            notes=tuple(note for output in given.outputs for note in output.notes),
        )
        return await self._store_part(part, clauses, len(own), given)

    async def _decide(self, reads: Reads, part: PartPlan, material: _Material) -> Writes:
        own = material.rules[part.first : part.last + 1]
        clauses = await self.toolbox.load(part.reference, ReadClauses)
        inputs = await asyncio.to_thread(self._prepare, reads, own, clauses.readings, material)
        given = await self.toolbox.consult_each(COMPLIANCE, (inputs,), reads.turns, reads)
        if given.calls is not None:
            return Writes(**given.calls.as_writes())
        if not given.outputs:
            return _fail_part(part, given)
        outputs, errors = [*given.outputs], given.errors
        reasons = {
            requirement.id: failed.errors[-1].text
            for inputs_of_part, failed in given.failed
            for requirement in inputs_of_part.requirements
        }
        if lost := [
            requirement for requirement in _list_lost(own, outputs) if requirement.id not in reasons
        ]:
            wanted = inputs.model_copy(update={"requirements": compress_requirements(lost)})
            again = await self.toolbox.consult(COMPLIANCE, wanted, reads=reads)
            outputs += [] if isinstance(again, NoOutput) else [again.output]
            errors += again.errors
        decided = _decide_verdicts(own, outputs, inputs, material, reasons)
        written = await self._store_part(part, decided, len(decided.verdicts), given)
        return written.model_copy(update={"errors": errors})

    async def _store_part(
        self,
        part: PartPlan,
        content: BaseModel,
        items: int,
        given: BatchOutputs[ComplianceInputs, ComplianceOutput],
    ) -> Writes:
        stored = StoredPart(
            reference=await self.toolbox.store(content), items=items, decided_by=given.decided_by
        )
        return Writes(stored_parts={part.key: stored}, errors=given.errors)

    def _make_inputs(
        self,
        reads: Reads,
        rules: Sequence[Requirement],
        passages: Sequence[RulePassage],
        material: _Material,
    ) -> ComplianceInputs:
        return ComplianceInputs(
            question=reads.question,
            language=reads.language,
            document=name_documents([document.title for document in material.documents]),
            law="" if reads.checklist is None else reads.checklist.target_law,
            requirements=compress_requirements(rules),
            passages=tuple(passage.unit for passage in passages),
            is_whole=len(passages) == len(material.passages),
        )

    def _prepare(
        self,
        reads: Reads,
        own: Sequence[Requirement],
        readings: Sequence[ClauseReading],
        material: _Material,
    ) -> ComplianceInputs:
        """Return the inputs for the verdicts on some requirements, with everything that may be
        relevant.
        """
        ids = {requirement.id for requirement in own}
        known = tuple(reading for reading in readings if reading.requirement_id in ids)
        shown = _choose_passages(own, known, material)
        return self._make_inputs(reads, own, shown, material).model_copy(
            update={
                "comparisons": tuple(_compare_numbers(own, known, material)),
                "readings": known,
            }
        )

    async def _join(self, reads: Reads, material: _Material) -> Writes:
        stored = reads.stored_parts
        planned = _plan_rules(material)
        read = [plan for plan in planned if reads.has_result(plan)]
        loaded = [await self.toolbox.load(stored[plan.key].reference, DecidedPart) for plan in read]
        _, notes = await self._load_readings(reads)
        joined = join_decisions(loaded)
        decided = {verdict.requirement_id for verdict in joined.verdicts}
        reasons = _list_reasons(planned, stored, material)
        lost = [
            RuleVerdict(requirement_id=rule.id, status=Status.UNDECIDED, note=reasons[rule.id])
            for rule in material.rules
            if rule.id not in decided
        ]
        by_id = {verdict.requirement_id: verdict for verdict in (*joined.verdicts, *lost)}
        result = ReviewResult(
            verdicts=tuple(by_id[rule.id] for rule in material.rules),
            notes=tuple(dict.fromkeys((*joined.notes, *notes))),
            passages=len(material.passages),
        )
        errors: tuple[SpecialistError, ...] = ()
        if undecided := len(result.of_status(Status.UNDECIDED)):
            text = f"{undecided} of {len(material.rules)} requirements were not decided"
            errors = (self.toolbox.make_error(text),)
        models = tuple(sorted({part.decided_by for part in stored.values()} - {""}))
        return Writes(verdicts=await self._store(result, material, reads, models), errors=errors)

    async def _store(
        self,
        result: ReviewResult,
        material: _Material,
        reads: Reads,
        models: tuple[str, ...],
    ) -> StoredVerdicts:
        known = [
            verdict.confidence for verdict in result.verdicts if verdict.confidence is not None
        ]
        return StoredVerdicts(
            reference=await self.toolbox.store(result),
            requirements=len(material.rules),
            compliant=len(result.of_status(Status.COMPLIANT)),
            violations=len(result.of_status(Status.VIOLATION)),
            gaps=len(result.of_status(Status.GAP)),
            undecided=tuple(
                verdict.requirement_id for verdict in result.of_status(Status.UNDECIDED)
            ),
            confidence=round(sum(known) / len(known), 4) if known else None,
            notes=result.notes,
            decided_by=models,
        )


def _fail_part(part: PartPlan, given: BatchOutputs[ComplianceInputs, ComplianceOutput]) -> Writes:
    failure = given.errors[-1].text if given.errors else _NO_VERDICT
    is_refused = bool(given.failed) and all(failed.is_refused for _, failed in given.failed)
    stored = StoredPart(failure=failure, is_refused=is_refused)
    return Writes(stored_parts={part.key: stored}, errors=given.errors)


def _list_reasons(
    parts: Sequence[PartPlan], stored: Mapping[str, StoredPart], material: _Material
) -> dict[str, str]:
    """Return for each requirement the reason why it would have no verdict."""
    late = StoredPart(failure=_TOO_LATE)
    return {
        rule.id: stored.get(part.key, late).failure or _NO_VERDICT
        for part in parts
        for rule in material.rules[part.first : part.last + 1]
    }


def _find_problem(reads: Reads) -> str:
    """Return a sentence about missing input, or "" if nothing is missing."""
    if reads.checklist is None:
        return (
            "the output of requirement_extractor is missing; the order is extractor, "
            "requirement_extractor, compliance"
        )
    if not reads.checklist.requirements and reads.checklist.units_unread:
        return f"no requirement of {reads.checklist.target_law!r} is known, because it was not read"
    if not reads.checklist.requirements:
        return f"{reads.checklist.target_law!r} contains no requirements"
    if reads.extracted is None or not reads.extracted.documents:
        return "there is no document to review; name it, or add it to the documents"
    return ""


def _show_closest(material: _Material) -> ReviewResult:
    return ReviewResult(
        verdicts=tuple(
            RuleVerdict(
                requirement_id=rule.id,
                status=Status.UNDECIDED,
                closest=_list_evidence(material.find_closest(rule, _CLOSEST)),
            )
            for rule in material.rules
        ),
        passages=len(material.passages),
    )


def _list_evidence(passages: Iterable[RulePassage]) -> tuple[VerdictEvidence, ...]:
    return tuple(passage.evidence for passage in passages)


def _plan_clauses(material: _Material) -> tuple[PartPlan, ...]:
    """Return parts that contain every passage of the documents once."""
    sizes = [len(passage.text) for passage in material.passages]
    groups = _divide(sizes, _CLAUSE_CHARACTERS, _CLAUSE_ITEMS)
    return tuple(
        PartPlan(
            key=f"{_CLAUSES}{first}",
            label=_name_range(*(material.passages[at].heading for at in (first, last))),
            digest=material.digest,
            first=first,
            last=last,
        )
        for first, last in groups
    )


def _plan_rules(material: _Material) -> tuple[PartPlan, ...]:
    """Return parts that contain every requirement once; no part contains requirements in two
    languages.
    """
    parts: list[PartPlan] = []
    start = 0
    for _, group in groupby(material.rules, key=material.language_of):
        own = list(group)
        sizes = [len(requirement.statement) + len(requirement.quotation) for requirement in own]
        for first, last in _divide(sizes, _PART_CHARACTERS, _PART_ITEMS):
            ends = (own[at].place.name(own[at].statement) for at in (first, last))
            parts.append(
                PartPlan(
                    key=f"{_RULES}{start + first}",
                    label=f"{start + first + 1}-{start + last + 1}: {_name_range(*ends)}",
                    digest=material.digest,
                    first=start + first,
                    last=start + last,
                )
            )
        start += len(own)
    return tuple(parts)


def _divide(sizes: Sequence[int], longest: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last index of each group. If there are many items, the groups are
    larger, so that all of them fit into one scatter.
    """
    return divide_sizes(
        sizes,
        max(longest, 2 * sum(sizes) // _MOST_PARTS),
        max(most, 2 * len(sizes) // _MOST_PARTS),
    )


def _name_range(*ends: str) -> str:
    return " - ".join(dict.fromkeys(filter(None, ends)))


def _choose_rules(own: Sequence[RulePassage], material: _Material) -> tuple[Requirement, ...]:
    """Return the requirements that clauses may concern: all of them, or those closest to the
    clauses.
    """
    if sum(len(rule.statement) for rule in material.rules) <= _RULE_CHARACTERS:
        return material.rules
    worded = [
        RulePassage(
            rule.id, rule.place, " ".join((rule.quotation, *rule.wordings)), material.language
        )
        for rule in material.rules
    ]
    search = PassageSearch(worded)
    texts = [passage.text for passage in own]
    passages = search.find_each(texts, material.language, _PER_TEXT, 2 * _MOST_SHOWN)
    names = {passage.id for passage in passages}
    return tuple(rule for rule in material.rules if rule.id in names)


def _choose_passages(
    own: Sequence[Requirement], readings: Sequence[ClauseReading], material: _Material
) -> tuple[RulePassage, ...]:
    """Return all passages of a short document. For a longer one, return the passages that the
    search found or that a clause reading names, each with the preceding passage if that introduces
    it.
    """
    every = material.passages
    if sum(len(passage.text) for passage in every) <= _WHOLE_CHARACTERS:
        return every
    passages = [material.find_closest(requirement, _PER_TEXT) for requirement in own]
    names: dict[str, None] = dict.fromkeys(reading.passage for reading in readings)
    for rank in range(max((len(closest) for closest in passages), default=0)):
        for closest in passages:
            if rank < len(closest) and len(names) < _MOST_SHOWN:
                names.setdefault(closest[rank].id)
    at = {place for place, passage in enumerate(every) if passage.id in names}
    at |= {place - 1 for place in at if place and every[place].context}
    return tuple(every[place] for place in sorted(at))


def _compare_numbers(
    own: Sequence[Requirement], readings: Sequence[ClauseReading], material: _Material
) -> Iterator[ComparedMeasures]:
    """Yield the numbers in each requirement next to those in the passages closest to it."""
    by_id = {rule_passage.id: rule_passage for rule_passage in material.passages}
    for rule in own:
        read = [by_id[reading.passage] for reading in readings if reading.requirement_id == rule.id]
        closest = material.find_closest(rule, _COMPARED)
        for passage in {
            rule_passage.id: rule_passage for rule_passage in (*read, *closest)
        }.values():
            if lines := _compare(rule, passage, material):
                yield ComparedMeasures(requirement_id=rule.id, passage=passage.id, lines=lines)


def _compare(rule: Requirement, passage: RulePassage, material: _Material) -> tuple[str, ...]:
    return compare_measures(
        rule.quotation,
        passage.text,
        rule_language=material.language_of(rule),
        document_language=passage.language,
    )


def _list_lost(
    own: Sequence[Requirement], outputs: Iterable[ComplianceOutput]
) -> list[Requirement]:
    known = {verdict.requirement_id for output in outputs for verdict in output.verdicts}
    return [requirement for requirement in own if requirement.id not in known]


def _decide_verdicts(
    own: Sequence[Requirement],
    outputs: Sequence[ComplianceOutput],
    inputs: ComplianceInputs,
    material: _Material,
    reasons: Mapping[str, str],
) -> DecidedPart:
    """Return those verdicts of the model whose passages were located in the documents.

    `reasons` states why no model gave a verdict on certain requirements.
    """
    by_id = {verdict.requirement_id: verdict for output in outputs for verdict in output.verdicts}
    names = {passage.id for passage in inputs.passages}
    shown = {passage.id: passage for passage in material.passages if passage.id in names}
    notes = [note for output in outputs for note in output.notes]
    verdicts = []
    for rule in own:
        given = by_id.get(rule.id)
        if given is None:
            note = reasons.get(rule.id, _NO_VERDICT)
            lost = RuleVerdict(requirement_id=rule.id, status=Status.UNDECIDED, note=note)
            verdicts.append(lost)
            continue
        evidence = tuple(_find_evidence(rule, given, shown, notes))
        verdicts.append(_make_verdict(rule, given, evidence, material))
    return DecidedPart(
        verdicts=tuple(verdicts), notes=tuple(notes), passages=len(material.passages)
    )


def _find_evidence(
    rule: Requirement,
    given: RequirementVerdict,
    shown: Mapping[str, RulePassage],
    notes: list[str],
) -> Iterator[VerdictEvidence]:
    for quoted_passage in given.evidence:
        passage = shown.get(quoted_passage.passage)
        if passage is None:
            continue
        evidence = (
            passage.find_quotation(quoted_passage.quotation)
            if quoted_passage.quotation.strip()
            else None
        )
        if evidence is None and quoted_passage.quotation.strip():
            notes.append(_NOT_VERBATIM.format(name=rule.place.name(rule.statement)))
        yield passage.evidence if evidence is None else evidence


def _make_verdict(
    rule: Requirement,
    given: RequirementVerdict,
    evidence: tuple[VerdictEvidence, ...],
    material: _Material,
) -> RuleVerdict:
    status, note = Status(given.status), " ".join(given.reason.split())
    confidence: float | None = given.confidence
    is_untouched = status is Status.COMPLIANT and rule.kind is RuleKind.PERMISSION
    if status in {Status.COMPLIANT, Status.VIOLATION} and not evidence and not is_untouched:
        note = "; ".join(filter(None, (_NO_EVIDENCE.format(status=status.value), note)))
        status, confidence = Status.UNDECIDED, None
    is_open = status in {Status.GAP, Status.UNDECIDED}
    closest = material.find_closest(rule, _CLOSEST)[:_CLOSEST] if is_open else ()
    texts = {verdict_evidence.text for verdict_evidence in evidence}
    compared = [
        _compare(rule, passage, material)
        for passage in material.passages
        if any(text in passage.text for text in texts)
    ]
    return RuleVerdict(
        requirement_id=rule.id,
        status=status,
        confidence=confidence,
        evidence=evidence,
        closest=_list_evidence(closest),
        comparisons=tuple(dict.fromkeys(line for lines in compared for line in lines)),
        note=note,
    )
