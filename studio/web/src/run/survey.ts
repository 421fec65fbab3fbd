/** The table of a survey: of its answer, or of the steps so far. */

import type { Live } from "../events";
import { isObject, textOf } from "../json";
import type { Citation, JsonObject } from "../types";

export interface Cell {
  /** Empty if the document states nothing. */
  value: string;
  citations: Citation[];
  /** Why it is not counted. */
  doubt?: string;
}

export interface SurveyRow {
  document: string;
  title: string;
  source: string;
  /** It meets the conditions of the survey. */
  is_counted: boolean;
  /** Null until the document is asked. */
  cells: Record<string, Cell> | null;
}

export interface Survey {
  columns: { name: string; question: string; kind: string }[];
  figures: string[];
  rows: SurveyRow[];
}

/** The table of a survey that runs, from the updates of its steps; null before its columns are known. */
export function surveyOf({ steps }: Live): Survey | null {
  let columns: Survey["columns"] = [];
  const documents = new Map<string, JsonObject>();
  const cells = new Map<string, SurveyRow["cells"]>();
  for (const { update, method } of steps) {
    if (method !== SURVEY) continue;
    if (Array.isArray(update.columns)) columns = update.columns as unknown as Survey["columns"];
    for (const [id, about] of entries(update.documents)) put(documents, id, about);
    for (const [id, row] of entries(update.rows)) put(cells, id, row as SurveyRow["cells"]);
  }
  if (!columns.length) return null;
  const rows = [...documents].map(([document, { title, source }]) => ({
    document,
    title: textOf(title),
    source: textOf(source),
    is_counted: true,
    cells: cells.get(document) ?? null,
  }));
  return { columns, figures: [], rows };
}

export const SURVEY = "survey";

function entries(value: unknown): [string, JsonObject | null][] {
  return isObject(value as JsonObject) ? (Object.entries(value as JsonObject) as [string, JsonObject | null][]) : [];
}

/** Set an entry; null removes it, as in the state of a run. */
function put<V>(all: Map<string, V>, key: string, value: V | null): void {
  if (value === null) all.delete(key);
  else all.set(key, value);
}
