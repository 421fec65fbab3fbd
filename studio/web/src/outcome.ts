/** The status of a run in one word, as the command line and the API name it. */

import type { End } from "./events";
import type { Answer, AnswerStatus, Outcome, Run } from "./types";

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
  waiting: "The run waits for your reply.",
};

type Judged = Pick<Answer, "status" | "support">;

/** The status of an answer as its color shows it: `weak` for one that its sources support only weakly. */
export function lookOf({ status, support }: Judged): AnswerStatus | "weak" {
  return status === "answered" && support?.weak ? "weak" : status;
}

interface Following {
  end: End | null;
  /** A step of the run has begun. */
  begun: boolean;
  /** The stream has ended. */
  over: boolean;
  /** The run was resumed from this page and has not ended since. */
  going: boolean;
}

/** The outcome of a followed run: an end in its stream counts, else what the server stored, as lists show it. */
export function outcomeOf(run: Run, { end, begun, over, going }: Following): Outcome {
  const { state, outcome } = run.thread;
  if (!over) {
    if (state === "queued" && !begun) return state;
    return ["done", "waiting"].includes(state) && !going ? outcome : "running";
  }
  if (end?.kind === "answer") return end.answer.asks ? "waiting" : end.answer.status;
  return end ? ENDS[end.kind] : outcome;
}

const ENDS = { error: "failed", stopped: "stopped" } as const;

const UNANSWERED: Outcome[] = ["running", "queued", "stopped", "failed"];

/** Milliseconds until a list is loaded again: only while it has a run that works or waits for its turn. */
export function pauseOf(runs: readonly { outcome: Outcome }[] = []): number | false {
  return runs.some(({ outcome }) => outcome === "running" || outcome === "queued") ? PAUSE : false;
}

const PAUSE = 2_000;

/** True if a run in this state shows its answer. */
export function hasAnswer(outcome: Outcome): boolean {
  return !UNANSWERED.includes(outcome);
}
