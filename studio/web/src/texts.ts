/** Archived texts of a run, by reference. */

import { isObject, textOf } from "./json";
import type { Json, Passage } from "./types";

export interface Texts {
  passages: Map<string, Passage>;
  searches: Map<string, Search>;
}

/** A search with its passages, the best first. */
export interface Search {
  query: string;
  mode: string;
  hits: SearchHit[];
}

export interface SearchHit {
  /** The reference of the passage. */
  passage: string;
  score: number;
  /** Of graph search: what the passage got by itself and by its paths. */
  parts: Record<string, number>;
  paths: SearchPath[];
}

export interface SearchPath {
  kind: string;
  /** The id of the passage where the path begins; empty for the query. */
  source: string;
  name: string;
  sentence: string;
}

/** The passages and searches of an export, stored as JSON; other texts are prompts. */
export function textsOf(texts: Record<string, string>): Texts {
  const passages = new Map<string, Passage>();
  const searches = new Map<string, Search>();
  for (const [reference, text] of Object.entries(texts)) {
    const value = parse(text);
    const passage = passageOf(value);
    if (passage) passages.set(reference, passage);
    else if (isSearch(value)) searches.set(reference, value as unknown as Search);
  }
  return { passages, searches };
}

function isSearch(value: Json): boolean {
  return isObject(value) && typeof value.query === "string" && typeof value.mode === "string" && "hits" in value;
}

function passageOf(value: Json): Passage | null {
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
