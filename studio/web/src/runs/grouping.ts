import type { ListedRun } from "../types";

/** Runs of one conversation, the first one first; most have only one. */
export type Conversation = ListedRun[];

/** The runs by conversation, at the place of its latest run. */
export function conversationsOf(runs: readonly ListedRun[]): Conversation[] {
  const groups = new Map<string, ListedRun[]>();
  for (const run of runs) {
    const key = run.conversation || run.id;
    groups.set(key, [...(groups.get(key) ?? []), run]);
  }
  return [...groups.values()].map((group) => group.sort((a, b) => (a.created_at < b.created_at ? -1 : 1)));
}
