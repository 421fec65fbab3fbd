"""Evaluation questions: `maker` writes and checks them, `file` keeps them, `feedback` exports rated runs."""

from sleuth.studio.evaluation.question_maker.file import Candidate, Kind, Made, WrittenQuestions
from sleuth.studio.evaluation.question_maker.maker import QuestionPlan, make_questions, plan_questions

__all__ = ["Candidate", "Kind", "Made", "QuestionPlan", "WrittenQuestions", "make_questions", "plan_questions"]
