/** The status of a run in one word, as the command line and the API name it. */

import type { End } from "./events";
import { words } from "./format";
import type { Answer, AnswerStatus, Outcome, Run, Thread } from "./types";

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

/** An answer that its sources support only weakly. */
export const WEAK = "weak";

/** What the page shows with an answer that has no text of its own. */
export const EXPLANATIONS: Partial<Record<AnswerStatus, string>> = {
  out_of_budget: "The budget was used up before an answer was found.",
  waiting: "The run waits for your reply.",
};

type Judged = Pick<Answer, "status" | "support"> & Partial<Pick<Answer, "method">>;

/** The status of an answer as its color shows it: `weak` if its sources support it only weakly, `unchecked` if nothing
 * has checked that. */
export function lookOf({ status, support, method }: Judged): AnswerStatus | "weak" | "unchecked" {
  if (status !== "answered" || (!support && (!method || HAVE_OWN_CHECKS.includes(method)))) return status;
  return support ? (support.weak ? "weak" : status) : "unchecked";
}

/** The status of a listed run as its color shows it. */
export function lookOfRun({ outcome, weak }: Pick<Thread, "outcome" | "weak">): string {
  return outcome !== "answered" || weak === false ? outcome : weak ? "weak" : "unchecked";
}

const HAVE_OWN_CHECKS = ["survey", "report", "chat"];

/** How well its sources support an answer, if that was checked. */
export function supportOf(answer: Judged): string {
  const look = lookOf(answer);
  return answer.support || look === "unchecked" ? (SUPPORT[look] ?? "") : "";
}

const SUPPORT: Record<string, string> = {
  answered: "and supported by its sources",
  weak: "by its sources",
  unchecked: "against its sources",
};

/** A status in words. */
export function statusInWords(status: string): string {
  return WORDS[status] ?? words(status);
}

const WORDS: Record<string, string> = {
  unknown: "no answer found",
  weak: "weakly supported",
  unchecked: "not checked",
};

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
