"""Batches of questions for tests, and answers that fit them."""

from windlass.wire.questions import Choice, Question, QuestionBatch, QuestionResponse

CHOICES = (Choice("c1", "SQLite"), Choice("c2", "PostgreSQL", "When one machine is not enough"))
YES_NO = Question("q1", "yes_no", "Go on?")
SINGLE = Question("q2", "single_choice", "Which one?", choices=CHOICES)
MULTI = Question("q3", "multi_choice", "Which ones?", choices=CHOICES)
TEXT = Question("q4", "free_text", "What is it called?", "The name of the service")
ALL = (YES_NO, SINGLE, MULTI, TEXT)
ANSWERS = (
    QuestionResponse("q1", yes=False),
    QuestionResponse("q2", ("c2",)),
    QuestionResponse("q3", ("c2", "c1")),
    QuestionResponse("q4", fill_in_text="Windlass"),
)


def batch(
    id: str = "ask1", run: str = "r1", session: str = "s1", questions: tuple[Question, ...] = (YES_NO,)
) -> QuestionBatch:
    return QuestionBatch(id, session, f"call-{id}", questions, session, run)
