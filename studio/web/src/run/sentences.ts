/** The steps of a run as sentences. */

import { referencesIn } from "../changes";
import type { LiveStep } from "../events";
import { count, words } from "../format";
import { statusInWords } from "../outcome";
import { isObject, textOf } from "../json";
import type { Json, JsonObject } from "../types";

/** What each node does, while it runs and afterwards, and as a title. */
const WORK: Record<string, [string, string, string]> = {
  plan: ["Planning the steps", "Planned the steps", "Plan"],
  expand: ["Planning the steps", "Planned the steps", "Plan"],
  merge: ["Joining steps that ask the same", "Joined steps that ask the same", "Join alike steps"],
  retrieve: ["Searching the documents", "Searched the documents", "Search"],
  retrieve_coarse: ["Searching the documents", "Searched the documents", "Search"],
  retrieve_fine: ["Searching for evidence of the draft", "Searched for evidence of the draft", "Search for evidence"],
  query: ["Asking the knowledge graph", "Asked the knowledge graph", "Ask the knowledge graph"],
  read: ["Reading the passages", "Read the passages", "Read"],
  structure: ["Reading facts from the passages", "Read facts from the passages", "Read facts"],
  draft: ["Drafting an answer", "Drafted an answer", "Draft"],
  review: ["Checking the draft", "Checked the draft", "Check the draft"],
  verify: ["Checking the answer", "Checked the answer", "Check the answer"],
  check_evidence: ["Checking the evidence", "Checked the evidence", "Check the evidence"],
  refine: ["Adapting the next question", "Adapted the next question", "Adapt the next question"],
  aggregate: ["Combining the evidence", "Combined the evidence", "Combine the evidence"],
  collate: ["Collecting the evidence", "Collected the evidence", "Collect the evidence"],
  discover: ["Looking for what is missing", "Looked for what is missing", "Look for what is missing"],
  select_paths: [
    "Choosing the best line of reasoning",
    "Chose the best line of reasoning",
    "Choose a line of reasoning",
  ],
  reason: ["Reasoning", "Reasoned", "Reason"],
  integrate: ["Putting the findings together", "Put the findings together", "Put the findings together"],
  try_shortcut: ["Trying a direct answer", "Tried a direct answer", "Try a direct answer"],
  leave_shortcut: ["Returning to the plan", "Returned to the plan", "Return to the plan"],
  classify: ["Reading the question", "Read the question", "Read the question"],
  calculate: ["Calculating", "Calculated", "Calculate"],
  recall: ["Asking the model itself", "Asked the model itself", "Ask the model itself"],
  act: ["Working on the next step", "Worked on the next step", "Work on the next step"],
  converse: ["Replying", "Replied", "Reply"],
  clarify: ["Asking back", "Asked back", "Ask back"],
  approve: ["Waiting for your approval", "Had the plan approved", "Wait for approval"],
  select: ["Choosing the documents", "Chose the documents", "Choose the documents"],
  outline: ["Planning the sections", "Planned the sections", "Plan the sections"],
  research: ["Researching a section", "Researched a section", "Research a section"],
  write: ["Writing the sections", "Wrote the sections", "Write the sections"],
  answer: ["Writing the answer", "Wrote the answer", "Answer"],
};

/** What a node does or, once it has finished, did. */
export function workOf(node: string, running: boolean): string {
  const known = WORK[node];
  if (known) return known[running ? 0 : 1];
  const name = words(node);
  return name.charAt(0).toUpperCase() + name.slice(1);
}

/** What a node is for, as a title. */
export function titleOfNode(node: string): string {
  return WORK[node]?.[2] ?? workOf(node, false);
}

/**
 * What a person may read of a reply while it is written: of JSON the latest question or answer in it, of which the end
 * may be missing.
 */
export function draftOf(reply: string): string {
  if (!/^\s*(?:```\w*\s*)?[{[]/.test(reply)) return reply;
  const texts = [...reply.matchAll(/"(?:answer|finding|question|query)"\s*:\s*"((?:[^"\\]|\\.)*)/g)];
  const text = texts.at(-1)?.[1] ?? "";
  return text.replace(/\\n/g, " ").replace(/\\(["\\/])/g, "$1");
}

/** What a finished step found or decided, as short lines. */
export function findingsOf({ update, node }: Pick<LiveStep, "update" | "node">): string[] {
  const entries = (name: string) => (isObject(update[name]) ? Object.values(update[name]).filter(isObject) : []);
  const texts = (name: string, field: string) => entries(name).map((each) => textOf(each[field]));
  const lines = [
    ...["plan", "parts", "steps", "sections", "columns"].flatMap((name) => texts(name, "question").map(quoted)),
    ...texts("rounds", "query").map((query) => query && `Looked for “${query}”`),
    ...(node.startsWith("retrieve") ? passagesOf(update) : []),
    ...texts("drafts", "answer").map((draft) => `Draft: ${draft || "nothing"}`),
    ...entries("notes").map(noteLine),
    ...texts("attempts", "answer").map((answer) => `Tried: ${answer || "no answer"}`),
    ...entries("hops").map((subrun) => `${textOf(subrun.method)}: ${statusInWords(textOf(subrun.status))}`),
    update.halted === true ? "The budget is used up." : "",
  ];
  return [...new Set(lines.filter(Boolean))];
}

function noteLine(note: JsonObject): string {
  const remark = textOf(note.remark);
  return `Found: ${textOf(note.finding) || "nothing"}${remark && ` (${remark})`}`;
}

function passagesOf(update: JsonObject): string[] {
  const found = Object.entries(update).filter(([name]) => name !== "calls" && name !== "searches");
  const number = referencesIn(Object.fromEntries(found)).length;
  return number ? [`Found ${count(number, "passage")}`] : [];
}

function quoted(text: Json): string {
  return text ? `“${textOf(text)}”` : "";
}
