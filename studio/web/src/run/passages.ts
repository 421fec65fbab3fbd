/** The passages that steps found, with the scores and paths of their searches. */

import { referencesIn } from "../changes";
import type { SearchPath, Texts } from "../texts";
import type { JsonObject, Moment, Passage } from "../types";

/** A passage that a branch found; without a search, such as a neighbor of another passage, it has no rank. */
export interface Found {
  passage: Passage;
  /** The best one among its searches; 0 without a search. */
  rank: number;
  score: number;
}

/** All passages of a branch by id, in the order in which they were found. */
export function foundOn(path: readonly Moment[], texts: Texts): Map<string, Found> {
  const found = new Map<string, Found>();
  const add = (reference: string, rank: number, score: number) => {
    const passage = texts.passages.get(reference);
    if (!passage) return;
    const before = found.get(passage.id);
    if (!before?.rank || (rank && rank < before.rank)) found.set(passage.id, { passage, rank, score });
  };
  for (const { changed } of path) {
    for (const { hits } of searchesOf(changed, texts)) {
      hits.forEach(({ passage, score }, at) => add(passage, at + 1, score));
    }
    for (const reference of evidenceOf(changed)) add(reference, 0, 0);
  }
  return found;
}

/** The searches that a step recorded. */
export function searchesOf(changed: JsonObject, texts: Texts) {
  return referencesIn(changed.searches ?? []).flatMap((each) => texts.searches.get(each) ?? []);
}

/** The references of a step, except those of its model calls, which refer to prompts. */
export function evidenceOf(changed: JsonObject): string[] {
  return referencesIn(Object.fromEntries(Object.entries(changed).filter(([name]) => name !== "calls")));
}

/** The passages that only one of two branches found. */
export function differenceOf(a: ReadonlyMap<string, Found>, b: ReadonlyMap<string, Found>) {
  const without = (all: ReadonlyMap<string, Found>, other: ReadonlyMap<string, Found>) =>
    [...all].filter(([id]) => !other.has(id)).map(([, found]) => found);
  return { onlyA: without(a, b), onlyB: without(b, a) };
}

/** A place in a result, such as "rank 2, score 0.031". */
export function placeText({ rank, score }: Pick<Found, "rank" | "score">): string {
  return rank ? `rank ${rank}, score ${score.toPrecision(3)}` : "not ranked";
}

/** How graph search reached a passage, as a sentence. */
export function pathText({ kind, source, name, sentence }: SearchPath, texts: Texts): string {
  const from = source ? `“${titleOf(source, texts)}”` : "the query";
  const where = sentence ? `: ${sentence}` : "";
  switch (kind) {
    case "names":
      return `Named in ${from}${where}`;
    case "named_by":
      return `Names ${from}${where}`;
    case "shares":
      return `Shares “${name}” with ${from}${where}`;
    case "states":
      return `Reached from ${from} over the fact “${name}”${where}`;
    default:
      return `Reached from ${from} over “${name}”${where}`;
  }
}

function titleOf(id: string, texts: Texts): string {
  return [...texts.passages.values()].find((passage) => passage.id === id)?.title ?? id;
}
