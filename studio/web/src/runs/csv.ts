import type { Thread } from "../types";

const COLUMNS = [
  "id",
  "question",
  "answer",
  "outcome",
  "method",
  "calls",
  "tokens",
  "seconds",
  "created_at",
  "updated_at",
] as const;

/** The runs as a CSV table. A text that a spreadsheet would run as a formula begins with an apostrophe. */
export function csvOf(runs: readonly Thread[]): string {
  const rows = runs.map((run) => COLUMNS.map((name) => cell(run[name])).join(","));
  return `${[COLUMNS.join(","), ...rows].join("\r\n")}\r\n`;
}

function cell(value: string | number | null): string {
  if (typeof value === "number") return String(value);
  const text = value ?? "";
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}
