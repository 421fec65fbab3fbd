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

/** The turns of a run, the present one last; a run that is no chat has one. `active`: the last one is being answered. */
export function turnsOf({ thread, state }: Pick<Run, "thread" | "state">, active: boolean): Turn[] {
  const { after = "", turn } = thread.options;
  const [earlier, reply] = turn?.earlier ?? [];
  const { turns, isOpen } = said(state, after);
  if (!turns.length && earlier) turns.push({ question: earlier, run: after, text: reply ?? "" });
  const isNext = active && turns.at(-1)?.text && !isOpen;
  if (!turns.length || isNext) turns.push({ question: turn?.text || thread.question, run: "", text: "" });
  return turns;
}

/** The turns in the messages of a chat; the last one is open if it waits for a decision, not for a message. */
function said(state: JsonObject, after: string): { turns: Turn[]; isOpen: boolean } {
  const turns: Turn[] = [];
  let isOpen = false;
  for (const { type, content, additional_kwargs } of listIn(state.messages)) {
    if (type === "human") turns.push({ question: textOf(content), run: "", text: "" });
    const last = turns.at(-1);
    if (type === "human" || !last) continue;
    const about = isObject(additional_kwargs) ? additional_kwargs : {};
    isOpen = about.status === "waiting" && about.asked_back !== true;
    last.text = textOf(content);
    last.run = textOf(about.thread) || (turns.length === 1 ? after : "");
  }
  return { turns, isOpen };
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
