/** Archived texts of a run, by reference. */

import { isObject, textOf } from "./json";
import type { Json, Passage } from "./types";

export interface Texts {
  passages: Map<string, Passage>;
}

/** The passages of an export, stored as JSON; other texts are prompts. */
export function textsOf(texts: Record<string, string>): Texts {
  const passages = Object.entries(texts).map(([reference, text]) => [reference, passageOf(text)] as const);
  return { passages: new Map(passages.filter((entry): entry is [string, Passage] => entry[1] !== null)) };
}

function passageOf(text: string): Passage | null {
  const value = parse(text);
  if (!isObject(value) || !("document_id" in value)) return null;
  return {
    id: textOf(value.id),
    document: textOf(value.document_id),
    title: textOf(value.title),
    text: textOf(value.text),
    start: Number(value.start),
    end: Number(value.end),
    location: textOf(value.location),
  };
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}
