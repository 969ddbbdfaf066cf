"""Which questions can be put to people, and which answers fit them. What does not fit is refused by its field."""

from collections.abc import Sequence
from typing import assert_never

from windlass import limits
from windlass.errors import Invalid
from windlass.wire.questions import Choice, Question, QuestionResponse

# -- questions --------------------------------------------------------------------------------------------------------


def check_questions(tool_call_id: str, questions: Sequence[Question]) -> None:
    """Raise Invalid for a batch that people could not be shown, or not answer."""
    _check_text("tool_call_id", tool_call_id, limits.TOOL_CALL_ID_CHARACTERS)
    if not 0 < len(questions) <= limits.QUESTIONS_PER_BATCH:
        raise Invalid(f"questions: ask 1 to {limits.QUESTIONS_PER_BATCH} at a time.")
    _check_ids("questions", [question.id for question in questions])
    for number, question in enumerate(questions):
        _check_question(f"questions[{number}]", question)


def _check_question(place: str, question: Question) -> None:
    _check_text(f"{place}.question", question.question, limits.QUESTION_CHARACTERS, needed=True)
    _check_text(f"{place}.description", question.description, limits.QUESTION_DESCRIPTION_CHARACTERS)
    if question.type in ("yes_no", "free_text"):
        if question.choices:
            raise Invalid(f"{place}.choices: a {question.type} question has none.")
        return
    if not 2 <= len(question.choices) <= limits.CHOICES_PER_QUESTION:
        raise Invalid(f"{place}.choices: give 2 to {limits.CHOICES_PER_QUESTION}.")
    _check_ids(f"{place}.choices", [choice.id for choice in question.choices])
    for number, choice in enumerate(question.choices):
        _check_choice(f"{place}.choices[{number}]", choice)


def _check_choice(place: str, choice: Choice) -> None:
    _check_text(f"{place}.label", choice.label, limits.CHOICE_CHARACTERS, needed=True)
    _check_text(f"{place}.description", choice.description, limits.QUESTION_CHARACTERS)


def _check_ids(place: str, ids: Sequence[str]) -> None:
    """Two things of one name could not be told apart in an answer."""
    for number, id in enumerate(ids):
        _check_text(f"{place}[{number}].id", id, limits.ID_CHARACTERS, needed=True)
        if id in ids[:number]:
            raise Invalid(f"{place}[{number}].id: {id!r} is there twice.")


# -- answers ----------------------------------------------------------------------------------------------------------


def check_answers(questions: Sequence[Question], responses: Sequence[QuestionResponse]) -> tuple[QuestionResponse, ...]:
    """The answers in the order of the questions; Invalid unless there is one for each, and each fits."""
    known = {question.id: question for question in questions}
    given: dict[str, QuestionResponse] = {}
    for number, response in enumerate(responses):
        place = f"responses[{number}]"
        question = known.get(response.request_id)
        if question is None:
            raise Invalid(f"{place}.request_id: there is no such question in this batch.")
        if response.request_id in given:
            raise Invalid(f"{place}.request_id: {response.request_id!r} is answered twice.")
        _check_response(place, question, response)
        given[response.request_id] = response
    missing = [id for id in known if id not in given]
    if missing:
        raise Invalid(f"responses: {', '.join(missing)} not answered. A batch is answered whole, or canceled.")
    return tuple(given[id] for id in known)


def _check_response(place: str, question: Question, response: QuestionResponse) -> None:
    _check_text(f"{place}.fill_in_text", response.fill_in_text, limits.ANSWER_CHARACTERS)
    match question.type:
        case "yes_no":
            _refuse(f"{place}.selected_ids", bool(response.selected_ids), question)
            _refuse(f"{place}.fill_in_text", bool(response.fill_in_text), question)
            if response.yes is None:
                raise Invalid(f"{place}.yes: say true or false.")
        case "free_text":
            _refuse(f"{place}.selected_ids", bool(response.selected_ids), question)
            _refuse(f"{place}.yes", response.yes is not None, question)
            if not response.fill_in_text.strip():
                raise Invalid(f"{place}.fill_in_text: write an answer, or cancel the batch.")
        case "single_choice" | "multi_choice":
            _refuse(f"{place}.yes", response.yes is not None, question)
            _check_selection(f"{place}.selected_ids", question, response)
        case _:
            assert_never(question.type)


def _check_selection(place: str, question: Question, response: QuestionResponse) -> None:
    """Choices, or words of one's own where none of them fits; with several choices also both."""
    choices = {choice.id for choice in question.choices}
    chosen = response.selected_ids
    if unknown := [id for id in chosen if id not in choices]:
        raise Invalid(f"{place}: there is no choice {unknown[0][: limits.ID_CHARACTERS]!r} in {question.id}.")
    if len(set(chosen)) != len(chosen):
        raise Invalid(f"{place}: a choice is there twice.")
    own = bool(response.fill_in_text.strip())
    if not chosen and not own:
        raise Invalid(f"{place}: choose something, or give a fill_in_text of your own.")
    if question.type == "single_choice" and len(chosen) + own > 1:
        raise Invalid(f"{place}: {question.id} takes one choice, or a fill_in_text in its place.")


def _refuse(place: str, is_given: bool, question: Question) -> None:
    if is_given:
        raise Invalid(f"{place}: {question.id} is a {question.type} question, which does not take this.")


def _check_text(place: str, text: str, characters: int, *, needed: bool = False) -> None:
    if needed and not text.strip():
        raise Invalid(f"{place}: must not be empty.")
    if len(text) > characters:
        raise Invalid(f"{place}: at most {characters} characters.")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            # Half a character cannot be written down: the batch would wait in memory and never be on disk.
            raise Invalid(f"{place}: not valid Unicode text.") from None
