/** The status of a run in one word, as the command line and the API name it. */

import type { End } from "./events";
import type { AnswerStatus, Outcome, Run } from "./types";

/** All outcomes, as the runs can be filtered by them. */
export const OUTCOMES: Outcome[] = [
  "answered",
  "unknown",
  "refused",
  "invalid_question",
  "out_of_budget",
  "failed",
  "stopped",
  "waiting",
  "running",
  "queued",
];

/** What the page shows instead of the text of an answer that has none. */
export const EXPLANATIONS: Record<AnswerStatus, string> = {
  answered: "",
  unknown: "The documents do not contain an answer.",
  refused: "The evidence that was found does not suffice for an answer.",
  invalid_question: "The question assumes something that the documents contradict.",
  out_of_budget: "The budget was used up before an answer was found.",
  waiting: "The chat waits for your reply.",
};

interface Following {
  end: End | null;
  /** The stream has ended. */
  over: boolean;
  /** The run was resumed from this page and has not ended since. */
  going: boolean;
}

/** The outcome of a followed run: an end in its events may precede the latest resume. */
export function outcomeOf(run: Run, { end, over, going }: Following): Outcome {
  const { state, outcome } = run.thread;
  if (!over) return ["done", "waiting"].includes(state) && !going ? outcome : "running";
  if (end?.kind === "answer") return end.answer.asks ? "waiting" : end.answer.status;
  return end ? ENDS[end.kind] : outcome;
}

const ENDS = { error: "failed", stopped: "stopped" } as const;

const UNANSWERED: Outcome[] = ["running", "queued", "stopped", "failed"];

/** True if a run in this state shows its answer. */
export function hasAnswer(outcome: Outcome): boolean {
  return !UNANSWERED.includes(outcome);
}
