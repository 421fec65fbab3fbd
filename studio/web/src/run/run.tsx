/** One run: the question, the live steps, the answer, and the tabs to inspect it. */

import { lazy, Suspense, useEffect } from "react";
import { costOf } from "../cost";
import type { Live } from "../events";
import { spent, when } from "../format";
import { Busy, Chip, Problem } from "../parts";
import { hrefOf } from "../route";
import { runsChanged } from "../run-list";
import type { Run, Turn } from "../types";
import { useLoaded } from "../use";
import { Actions } from "./actions";
import { AnswerView } from "./answer";
import { FollowUpForm, Earlier, Later, RewrittenQuestion } from "./conversation";
import { BudgetForm } from "./budget-form";
import { Steps } from "./steps";
import { ChatHistory } from "./chat-history";
import { useLive } from "./use-live";

const Explorer = lazy(() => import("./explorer"));
const Compare = lazy(() => import("./compare"));

const TABS = [
  { tab: "", label: "Answer" },
  { tab: "explore", label: "Explore" },
  { tab: "compare", label: "Compare" },
];

export function RunPage({ id, query }: { id: string; query: URLSearchParams }) {
  const { live, problem: streamProblem, over, going, listen, resumed } = useLive(id);
  const { value: run, problem } = useLoaded<Run>(`runs/${id}`, over);
  const { value: turns } = useLoaded<Turn[]>(`runs/${id}/conversation`, over);
  useEffect(runsChanged, [run?.thread.state]);
  useTitle(run);
  if (problem) return <Problem>{problem}</Problem>;
  if (!run || !turns) return <Busy>Loading the run</Busy>;
  const status = statusOf(run, live, over, going);
  const tab = query.get("tab") ?? "";
  return (
    <article className="page run">
      {tab === "" && <Earlier turns={turns} id={id} />}
      <header className="run-head" ref={turns.length > 1 ? showLatest : null}>
        <Head run={run} live={live} status={status} />
        <Actions id={id} running={status === "running"} done={ANSWERED.includes(status)} onResumed={resumed} />
        <Problem>{streamProblem || problemOf(run, live, status)}</Problem>
      </header>
      <nav className="tabs" aria-label="This run">
        {TABS.map(({ tab: name, label }) => (
          <a
            key={label}
            href={hrefOf("runs", id, name ? { tab: name } : {})}
            aria-current={tab === name ? "page" : undefined}
          >
            {label}
          </a>
        ))}
      </nav>
      <Suspense fallback={<Busy>Loading</Busy>}>
        {tab === "explore" && (
          <Explorer thread={run.thread} live={live} over={over} at={query.get("at") ?? ""} onBegun={listen} />
        )}
        {tab === "compare" && (
          <Compare thread={run.thread} over={over} a={query.get("a") ?? ""} b={query.get("b") ?? ""} />
        )}
      </Suspense>
      {tab === "" && (
        <AnswerTab run={run} turns={turns} live={live} status={status} onResumed={resumed} onSent={listen} />
      )}
    </article>
  );
}

function useTitle(run: Run | null) {
  const question = run ? askedIn(run) : "";
  useEffect(() => {
    document.title = question ? `${question} – sleuth` : "sleuth";
    return () => {
      document.title = "sleuth";
    };
  }, [question]);
}

/** Scroll to the latest turn of a conversation. */
function showLatest(head: HTMLElement | null) {
  head?.scrollIntoView();
}

/** The question as the user typed it. */
function askedIn({ thread, follow_up }: Run): string {
  return follow_up?.asked ?? thread.question;
}

const LONG = 200;

/** The question; a long one is smaller and scrolls. */
function Question({ children }: { children: string }) {
  if (children.length <= LONG) return <h1>{children}</h1>;
  return (
    <div className="long" role="region" aria-label="Question" tabIndex={0}>
      <h1>{children}</h1>
    </div>
  );
}

function Head({ run, live, status }: { run: Run; live: Live; status: string }) {
  const { thread } = run;
  return (
    <>
      <Question>{askedIn(run)}</Question>
      <RewrittenQuestion asked={askedIn(run)} question={thread.question} cost={run.follow_up?.cost} />
      {run.follow_up?.warnings.map((warning) => (
        <p key={warning} className="warnings">
          {warning}
        </p>
      ))}
      <p className="row meta">
        <Chip status={status} /> <span>{thread.method}</span>
        <span className="quiet">thread {thread.id}</span>
        <span className="quiet">{when(thread.created_at)}</span>
        <span className="cost">{spent(soFar(run, live), status === "running" ? null : run.seconds)}</span>
      </p>
      {thread.parent && (
        <p className="quiet">
          {thread.part_of ? "Sub-run of " : "Forked from "}
          <a href={hrefOf("runs", thread.parent)}>run {thread.parent}</a>
        </p>
      )}
    </>
  );
}

interface AnswerTabProps {
  run: Run;
  turns: Turn[];
  live: Live;
  status: string;
  onResumed: () => void;
  onSent: () => void;
}

/** The answer, if there is one, with the form for a follow-up, and the steps. */
function AnswerTab({ run, turns, live, status, onResumed, onSent }: AnswerTabProps) {
  const answer = live.end?.kind === "answer" ? live.end.answer : run.answer;
  const answered = ANSWERED.includes(status) && answer;
  return (
    <>
      <ChatHistory state={run.state} />
      {answered && <AnswerView answer={answer} />}
      {answered && answer.status === "out_of_budget" && (
        <BudgetForm thread={run.thread} cost={answer.cost} took={answer.seconds} onResumed={onResumed} />
      )}
      {answered && <Later turns={turns} id={run.thread.id} />}
      {answered && <FollowUpForm run={run} onSent={onSent} />}
      <Steps live={live} running={status === "running"} id={run.thread.id} />
    </>
  );
}

/** The error of a failed run, which can be resumed. */
function problemOf(run: Run, live: Live, status: string): string {
  if (status !== "failed") return "";
  return live.end?.kind === "error" ? live.end.message : run.thread.problem;
}

/** A run with an open stream is running: an end in its events may precede the latest resume. */
function statusOf(run: Run, live: Live, over: boolean, going: boolean): string {
  const { state } = run.thread;
  if (!over) return ANSWERED.includes(state) && !going ? state : "running";
  if (live.end?.kind === "answer") return live.end.answer.asks ? "waiting" : "done";
  return live.end ? ENDS[live.end.kind] : state;
}

const ENDS = { error: "failed", stopped: "stopped" };
const ANSWERED = ["done", "waiting"];

/** The cost of the steps so far while the run is active; the cost from the server otherwise. */
function soFar(run: Run, live: Live) {
  const counted = costOf(live.calls);
  return counted.calls > run.cost.calls ? counted : run.cost;
}
