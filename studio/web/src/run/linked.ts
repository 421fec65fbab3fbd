/** The source of an answer that an address names, as the annotations of the OpenAI-compatible routes do. */

import { count } from "../format";
import type { Citation } from "../types";

export interface Linked {
  citation: Citation | null;
  /** Why there is no such source; empty if there is one or none is named. */
  notice: string;
}

/** The source with the number `citation`; that of the passage `passage` if another branch has changed the numbers. */
export function linkedIn(citations: Citation[], query: URLSearchParams): Linked {
  const number = query.get("citation");
  if (number === null) return { citation: null, notice: "" };
  const passage = query.get("passage");
  const isNamed = (each: Citation) => !passage || each.passage === passage;
  const numbered = /^[1-9]\d*$/.test(number) ? citations[Number(number) - 1] : undefined;
  const citation = numbered && isNamed(numbered) ? numbered : citations.find((each) => passage && isNamed(each));
  if (citation) return { citation, notice: "" };
  return {
    citation: null,
    notice: `The link names source ${number}, which this answer does not have: it has ${count(citations.length, "source")}.`,
  };
}
