/** The turns of a conversation: each question with the run that answered it. */

import type { Live, LiveStep } from "../events";
import { isObject, textOf } from "../json";
import type { Json, JsonObject, Run, Thread } from "../types";

export const CHAT = "chat";

export interface Turn {
  question: string;
  /** The run that answered it; "" if it was answered without one, or is not answered. */
  run: string;
  /** The reply as a message. */
  text: string;
}

/** The turns of a run in the order in which their messages were sent; a run that is no chat has one. */
export function turnsOf({ thread, state }: Pick<Run, "thread" | "state">): Turn[] {
  const turns: Turn[] = [];
  for (const { type, content, additional_kwargs } of listIn(state.messages)) {
    const last = turns.at(-1);
    if (type === "human") turns.push({ question: textOf(content), run: "", text: "" });
    else if (last) {
      last.text = textOf(content);
      last.run = isObject(additional_kwargs) ? textOf(additional_kwargs.thread) : "";
    }
  }
  return turns.length ? turns : [{ question: thread.question, run: "", text: "" }];
}

/** The place of the turn that is answered now, or was answered last; those after it wait. */
export function presentIn(turns: Turn[]): number {
  const open = turns.findIndex(({ text }) => !text);
  return open < 0 ? turns.length - 1 : open;
}

function listIn(messages: Json | undefined): JsonObject[] {
  return Array.isArray(messages) ? messages.filter(isObject) : [];
}

/** The steps of the present turn, without those of the chat around the method. */
export function stepsOfTurn({ steps }: Pick<Live, "steps">, thread: Pick<Thread, "id" | "method">): LiveStep[] {
  if (thread.method !== CHAT) return steps;
  const first = steps.findLastIndex((step) => step.thread === thread.id && step.node === "classify");
  return steps.slice(Math.max(first, 0)).filter((step) => step.thread !== thread.id || OF_CHAT.includes(step.node));
}

const OF_CHAT = ["classify", "converse", "clarify"];

/** How the question of a turn was understood, if it was rewritten. */
export function rewrittenIn(state: JsonObject, { question }: Turn): string {
  const understood = textOf(state.question).trim();
  return state.messages && understood !== question.trim() ? understood : "";
}
