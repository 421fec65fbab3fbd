/** One run: the question, the answer with its sources or the steps so far, and the tabs to inspect it. */

import { lazy, Suspense, useEffect } from "react";
import type { Live } from "../events";
import { NotFound } from "../not-found";
import { hasAnswer, lookOf, outcomeOf } from "../outcome";
import { loaded } from "../loaded";
import { Busy, Problem } from "../parts";
import { hrefOf } from "../route";
import { refresh, useServer } from "../server";
import type { Answer, Outcome, Run } from "../types";
import { Actions } from "./actions";
import { AnswerView } from "./answer";
import { BranchBanner } from "./branch-banner";
import { BudgetForm } from "./budget-form";
import { ChatHistory } from "./chat-history";
import { CostTable } from "./cost-table";
import { Feedback } from "./feedback";
import { Findings } from "./findings";
import { FollowUpForm } from "./follow-up";
import { Head } from "./head";
import { linkedIn } from "./linked";
import { asksForApproval, Request } from "./request";
import { Progress } from "./steps";
import { useLive } from "./use-live";

const Explorer = lazy(() => loaded(() => import("./explorer")));
const Compare = lazy(() => loaded(() => import("./compare")));

const TABS = [
  { tab: "", label: "Answer" },
  { tab: "explore", label: "Explore" },
  { tab: "compare", label: "Compare" },
];

const MISSING = 404;
const RESUMABLE: Outcome[] = ["stopped", "failed", "queued"];

export function RunPage({ id, query }: { id: string; query: URLSearchParams }) {
  const { live, problem: streamProblem, over, going, listen, resumed } = useLive(id);
  const { value: run, problem, status } = useServer<Run>(`runs/${id}`);
  const finished = live.steps.filter((step) => step.state === "done").length;
  useEffect(() => {
    refresh(`runs/${id}`, "runs?");
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
  const shown = live.end?.kind === "answer" ? live.end.answer : run.answer;
  const view = { run, live, outcome, active, answer: hasAnswer(outcome) ? shown : null, onResumed: resumed };
  return <RunView {...view} problem={streamProblem || problemOf(run, live, outcome)} query={query} onBegun={listen} />;
}

interface ViewProps {
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

function RunView({ problem, query, onBegun, ...view }: ViewProps) {
  const { run, outcome, active, answer, onResumed } = view;
  const { id } = run.thread;
  const tab = TABS.find((each) => each.tab === query.get("tab"))?.tab ?? "";
  return (
    <article className="page run">
      <header className="run-head">
        <Head
          run={run}
          outcome={outcome}
          look={answer ? lookOf(answer) : outcome}
          took={answer?.seconds ?? run.seconds}
        >
          <Actions
            thread={run.thread}
            answer={answer}
            running={active}
            isResumable={!active && RESUMABLE.includes(outcome)}
            onResumed={onResumed}
          />
        </Head>
        <Problem>{problem}</Problem>
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
        {tab === "explore" && <Explorer thread={run.thread} at={query.get("at") ?? ""} onBegun={onBegun} />}
        {tab === "compare" && <Compare thread={run.thread} a={query.get("a") ?? ""} b={query.get("b") ?? ""} />}
      </Suspense>
      {tab === "" && <AnswerTab {...view} query={query} onSent={onBegun} />}
    </article>
  );
}

function useTitle(run: Run | null) {
  const question = run?.thread.question;
  useEffect(() => {
    document.title = question ? `${question} – sleuth` : "sleuth";
    return () => {
      document.title = "sleuth";
    };
  }, [question]);
}

interface AnswerTabProps extends Omit<ViewProps, "problem" | "onBegun"> {
  onSent: () => void;
}

/** The answer with the form for a follow-up and how it was found; the steps so far until there is one. */
function AnswerTab({ run, live, outcome, active, answer, query, onResumed, onSent }: AnswerTabProps) {
  const { id } = run.thread;
  return (
    <>
      <BranchBanner id={id} />
      <ChatHistory state={run.state} />
      {answer ? (
        <AnswerView
          key={query.get("citation")}
          answer={answer}
          label="Answer"
          linked={linkedIn(answer.citations, query)}
        >
          {outcome === "waiting" && <Request thread={run.thread} answer={answer} onSent={onSent} />}
          {outcome === "out_of_budget" && (
            <BudgetForm thread={run.thread} cost={answer.cost} took={answer.seconds} onResumed={onResumed} />
          )}
          {!asksForApproval(answer) && <FollowUpForm thread={run.thread} onSent={onSent} />}
          <Findings answer={answer} live={live} id={id} state={run.state} />
          <CostTable cost={answer.cost} took={answer.seconds} />
          <Feedback thread={run.thread} />
        </AnswerView>
      ) : (
        <Progress live={live} running={active} id={id} />
      )}
    </>
  );
}

/** The error of a failed run, which can be resumed. */
function problemOf(run: Run, live: Live, outcome: Outcome): string {
  if (outcome !== "failed") return "";
  return live.end?.kind === "error" ? live.end.message : run.thread.problem;
}
