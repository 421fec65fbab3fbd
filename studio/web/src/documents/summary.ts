/** What an upload did with each of its files. */

import { count } from "../format";
import type { Ingest } from "../types";

export interface FileResult {
  file: string;
  /** Empty if the upload was stopped before this file. */
  outcome: "added" | "replaced" | "unchanged" | "failed" | "";
  /** Why it failed. */
  reason: string;
}

/** The ending of a file with the properties of another one. */
const SIDECAR = ".meta.json";

/** The files of an upload, each once and the failed ones first. */
export function resultsOf({ files, outcomes, failed }: Ingest): FileResult[] {
  const isProperties = (file: string) => file.endsWith(SIDECAR) && files.includes(file.slice(0, -SIDECAR.length));
  const documents = files.filter((file) => !isProperties(file));
  const results = documents.map((file): FileResult => {
    const reasons = failed.filter(({ source }) => source === file).map(({ problem }) => withoutName(problem, file));
    if (!reasons.length) return { file, outcome: outcomes[file] ?? "", reason: "" };
    return { file, outcome: "failed", reason: [...new Set(reasons)].join(" ") };
  });
  return results.sort((a, b) => Number(b.outcome === "failed") - Number(a.outcome === "failed"));
}

function withoutName(problem: string, file: string): string {
  return problem.startsWith(file) ? problem.slice(file.length).replace(/^[:,]? /, "") : problem;
}

const OUTCOMES = ["added", "replaced", "unchanged", "failed"] as const;

/** A summary such as "3 files: 2 added, 1 failed." */
export function summaryOf(ingest: Ingest): string {
  const { status, read, total, done } = ingest;
  if (status === "waiting") return "Waiting for its turn";
  if (!done) return `${read} of ${count(total, "file")} ingested`;
  const results = resultsOf(ingest);
  const counts = OUTCOMES.map((outcome) => ({ outcome, files: results.filter((each) => each.outcome === outcome) }))
    .filter(({ files }) => files.length)
    .map(({ outcome, files }) => `${files.length} ${outcome}`);
  const sent = count(results.length, "file");
  if (status !== "stopped") return `${sent}: ${counts.join(", ")}.`;
  const left = results.filter((each) => !each.outcome).length;
  const partly = total === results.length ? total - read - left : 0; // of many documents; an archive has many files
  const all = [...counts, ...(left ? [`${left} not ingested`] : [])].join(", ");
  return `Stopped. ${sent}: ${all}${partly > 0 ? ` (${partly} in part)` : ""}.`;
}
