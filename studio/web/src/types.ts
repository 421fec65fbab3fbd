/** Types of the server's JSON. */

import type { Survey } from "./run/survey";

export type Json = string | number | boolean | null | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

export type RunState = "queued" | "running" | "waiting" | "stopped" | "interrupted" | "failed" | "done";
export type AnswerStatus = "answered" | "refused" | "unknown" | "invalid_question" | "out_of_budget" | "waiting";

export type Outcome = Exclude<RunState, "done" | "interrupted"> | AnswerStatus | "done";

export interface Budget {
  max_calls: number | null;
  max_tokens: number | null;
  max_seconds: number | null;
}

export interface Health {
  model?: string;
  /** Why no model can be used. */
  problem?: string;
}

export interface Thread {
  id: string;
  method: string;
  question: string;
  /** What a person has called the run; "" if nobody has. */
  title: string;
  options: Options;
  feedback?: JsonObject;
  state: RunState;
  /** The state; of a finished run, the status of its answer. */
  outcome: Outcome;
  problem: string;
  parent: string;
  parent_checkpoint: string;
  part_of: string;
  created_at: string;
  updated_at: string;
  /** The beginning of the answer. */
  answer: string | null;
  /** The sources support the answer only weakly; null if nothing has checked that. */
  weak: boolean | null;
  calls: number | null;
  tokens: number | null;
  seconds: number | null;
}

export interface Options {
  values: JsonObject;
  budget: Budget;
  model?: string;
  where?: string;
  /** The run that a chat follows up on. */
  after?: string;
  /** The latest message of a chat. */
  turn?: { text: string };
}

export interface Citation {
  passage: string;
  document: string;
  title: string;
  quote: string;
  start: number;
  end: number;
  kind?: string;
  reference?: string;
  why?: { passage: string; name: string };
  newer?: string;
  /** The document was updated after the answer: it lacks the quote. */
  changed?: boolean;
  location?: string;
  /** Of an answer of several sentences: the ends of those that it supports, in characters (code points). */
  sentence_ends?: number[];
}

export interface Note {
  question: string;
  finding: string;
  passages: string[];
  /** Its own quotes; a run has them in its state only. */
  citations?: Citation[];
  remark?: string;
}

export interface NodeCost {
  calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  /** The sum over all calls, including parallel ones. */
  model_seconds: number;
}

export interface Cost extends NodeCost {
  cached_tokens: number;
  nodes: Record<string, NodeCost>;
}

export interface Subrun {
  method: string;
  why: string;
  thread: string;
  status: string;
  text: string;
  doubt: string;
  confidence: number | null;
}

export interface Answer {
  thread: string;
  checkpoint: string;
  method: string;
  question: string;
  status: AnswerStatus;
  text: string;
  citations: Citation[];
  notes: Note[];
  cost: Cost;
  /** Wall-clock seconds. */
  seconds: number;
  warnings: string[];
  /** What the evidence checker gives to the answer and to the question. */
  support?: {
    score: number;
    answerable: number;
    /** The sources support the answer only weakly. */
    weak?: boolean;
    /** Another answer, which the sources support more. */
    also?: { text: string; citations: Citation[] };
  };
  hops?: Subrun[];
  /** The table of a survey. */
  table?: Survey;
  /** The number of documents, if a survey of all is offered. */
  ask_all?: number;
  /** What a waiting run asks. */
  asks?: JsonObject;
}

export interface Run {
  thread: Thread;
  answer: Answer | null;
  state: JsonObject;
  cost: Cost;
  seconds: number | null;
}

/** A model call in the state. */
export interface CallRecord {
  role: string;
  node: string;
  prompt_tokens: number;
  cached_tokens: number;
  completion_tokens: number;
  seconds: number;
}

export interface Moment {
  checkpoint: string;
  parent: string;
  step: number;
  node: string[];
  next: string[];
  at: string;
  changed: JsonObject;
  source: "input" | "loop" | "update" | "fork";
}

export interface Edge {
  from: string;
  to: string;
  conditional: boolean;
}

export interface Method {
  name: string;
  summary: string;
  paper: string;
  when: string;
  baseline: boolean;
  calls: string;
  /** Of the user's own finished runs. */
  average?: { runs: number; calls: number; tokens: number; seconds: number | null } | null;
  nodes: string[];
  graph: { nodes: string[]; edges: Edge[] };
  settings: JsonObject;
}

export interface DocumentRow {
  id: string;
  title: string;
  source: string;
  media_type: string;
  passages: number;
  added_at: string;
  date?: string | null;
  tags?: string[] | null;
}

export interface DocumentText {
  id: string;
  title: string;
  text: string;
  media_type: string;
  /** A copy of its file is kept. */
  has_original: boolean;
  passages: { id: string; start: number; end: number }[];
}

export interface Passage {
  id: string;
  document: string;
  title: string;
  text: string;
  start: number;
  end: number;
  location: string;
}

export interface Ingest {
  status: "waiting" | "reading" | "stopping" | "stopped" | "done" | "failed";
  /** Names with their folders. */
  files: string[];
  read: number;
  total: number;
  /** Files that were not ingested; an empty source is the whole upload. */
  failed: { source: string; problem: string }[];
  outcomes: Record<string, "added" | "replaced" | "unchanged">;
  done: boolean;
}

export interface StepEvent {
  thread: string;
  node: string;
  state: "started" | "finished";
  method: string;
  update: JsonObject;
}

/** Text of a reply that is being written. */
export interface DeltaEvent {
  thread: string;
  node: string;
  call: string;
  text: string;
}

/** A model call with its prompt and reply. */
export interface CallText extends CallRecord {
  id: string;
  /** The prompt's. */
  name: string;
  prompt: string;
  reply: string;
}

export interface Checkpoint {
  checkpoint: string;
  parent: string;
  values: JsonObject;
  calls: CallText[];
}
