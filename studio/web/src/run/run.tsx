/** One run: the conversation, or what is behind an answer of it. */

import { useEffect } from "react";
import type { Live } from "../events";
import { NotFound } from "../not-found";
import { hasAnswer, outcomeOf } from "../outcome";
import { Busy, Problem } from "../parts";
import { refresh, useServer } from "../server";
import type { Answer, Outcome, Run } from "../types";
import { Conversation } from "./conversation";
import { Details } from "./details";
import { useLive } from "./use-live";

const MISSING = 404;

export interface ViewProps {
  run: Run;
  live: Live;
  outcome: Outcome;
  /** The run works or waits for its turn. */
  active: boolean;
  answer: Answer | null;
  problem: string;
  query: URLSearchParams;
  /** The run was resumed after it was stopped. */
  onResumed: () => void;
  /** The run continues with a branch or a message. */
  onBegun: () => void;
}

export function RunPage({ id, query }: { id: string; query: URLSearchParams }) {
  const { live, problem: streamProblem, over, going, listen, resumed } = useLive(id);
  const { value: run, problem, status } = useServer<Run>(`runs/${id}`);
  const finished = live.steps.filter((step) => step.state === "done").length;
  useEffect(() => {
    refresh(`runs/${id}`, "runs?", "methods");
  }, [id, over]);
  const begun = live.steps.length > 0;
  useEffect(() => {
    if (begun) refresh("runs?");
  }, [begun]);
  useEffect(() => {
    refresh(`runs/${id}/history`);
  }, [id, finished]);
  useTitle(run);
  if (status === MISSING) {
    return (
      <NotFound title="This run does not exist">It may have been deleted, or it belongs to someone else.</NotFound>
    );
  }
  if (problem) return <Problem>{problem}</Problem>;
  if (!run) return <Busy>Loading the run</Busy>;
  const outcome = outcomeOf(run, { end: live.end, begun, over, going });
  const active = outcome === "running" || (outcome === "queued" && !over);
  const latest = live.end?.kind === "answer" ? live.end.answer : run.answer;
  const View = query.has("tab") ? Details : Conversation;
  return (
    <View
      run={run}
      live={live}
      outcome={outcome}
      active={active}
      answer={hasAnswer(outcome) ? latest : null}
      problem={streamProblem || problemOf(run, live, outcome)}
      query={query}
      onResumed={resumed}
      onBegun={listen}
    />
  );
}

function useTitle(run: Run | null) {
  const title = run?.thread.title || run?.thread.question;
  useEffect(() => {
    document.title = title ? `${title} – sleuth` : "sleuth";
    return () => {
      document.title = "sleuth";
    };
  }, [title]);
}

/** The error of a failed run, which can be resumed. */
function problemOf(run: Run, live: Live, outcome: Outcome): string {
  if (outcome !== "failed") return "";
  return live.end?.kind === "error" ? live.end.message : run.thread.problem;
}
