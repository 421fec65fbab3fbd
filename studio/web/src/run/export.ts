/** An answer as Markdown with its citations. */

import { EXPLANATIONS } from "../outcome";
import type { Answer } from "../types";
import { titleOf } from "./sources";

/** The question, the answer with numbered footnotes, and the quote of each. */
export function markdownOf(answer: Answer): string {
  const characters = Array.from(answer.text || (EXPLANATIONS[answer.status] ?? ""));
  const endsOf = (ends: number[] | undefined) => ends ?? [characters.length];
  const marksAt = (end: number) =>
    answer.citations.flatMap((each, at) => (endsOf(each.sentence_ends).includes(end) ? [`[^${at + 1}]`] : []));
  const text = characters.map((character, at) => character + marksAt(at + 1).join("")).join("");
  const notes = answer.citations.map((citation, at) => {
    const place = [titleOf(citation), citation.location].filter(Boolean).join(", ");
    return `[^${at + 1}]: ${place}: “${citation.quote.replace(/\s+/g, " ")}”`;
  });
  return `${[`# ${answer.question}`, text, notes.join("\n")].filter(Boolean).join("\n\n")}\n`;
}
