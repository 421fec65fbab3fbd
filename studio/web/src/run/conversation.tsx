/** A conversation: its questions and answers in one column, the sources of one answer beside them. */

import { useCallback, useEffect, useRef, useState } from "react";
import { Problem } from "../parts";
import { useServer } from "../server";
import type { Answer, Citation, Run } from "../types";
import { Actions } from "./actions";
import { AnswerView, type Open } from "./answer";
import { BranchBanner } from "./branch-banner";
import { BudgetForm } from "./budget-form";
import { Feedback } from "./feedback";
import { FollowUpForm } from "./follow-up";
import { Question } from "./head";
import { linkedIn } from "./linked";
import { AnswerMarkdown } from "./markdown";
import { asksForApproval, Request } from "./request";
import type { ViewProps } from "./run";
import { RunControl } from "./run-control";
import { Sources } from "./sources";
import { Progress } from "./steps";
import { presentIn, rewrittenIn, stepsOfTurn, turnsOf, type Turn } from "./turns";

interface Shown {
  answer: Answer;
  citation: Citation | null;
}

export function Conversation(props: ViewProps) {
  const { run, active, answer, query, onBegun } = props;
  const turns = turnsOf(run);
  const present = presentIn(turnsOf(run));
  const linked = linkedIn(answer?.citations ?? [], query);
  // What was opened at a turn; the next turn begins with its own sources.
  const [opened, setOpened] = useState<(Shown & { turn: number }) | null>(null);
  const shown = opened?.turn === present ? opened : answer && { answer, citation: linked.citation };
  const show = useCallback<Open>((of, citation) => setOpened({ answer: of, citation, turn: present }), [present]);
  return (
    <article className={answer?.table ? "conversation with-table" : "conversation"}>
      <div className="turns">
        <BranchBanner id={run.thread.id} />
        {turns.map((turn, at) =>
          at < present ? (
            <EarlierTurn key={at} turn={turn} number={at + 1} onOpen={show} />
          ) : at === present ? (
            <LatestTurn key={at} {...props} turn={turn} number={at + 1} notice={linked.notice} onOpen={show} />
          ) : (
            <WaitingTurn key={at} turn={turn} number={at + 1} />
          ),
        )}
      </div>
      {!answer?.table && <SourcesOf shown={shown} onOpen={show} />}
      {(active || (answer && !asksForApproval(answer))) && (
        <div className="dock">
          <FollowUpForm thread={run.thread} active={active} onSent={onBegun} />
        </div>
      )}
    </article>
  );
}

function SourcesOf({ shown, onOpen }: { shown: Shown | null; onOpen: Open }) {
  return (
    <Sources
      citations={shown?.answer.citations ?? []}
      opened={shown?.citation ?? null}
      onOpen={(citation) => shown && onOpen(shown.answer, citation)}
    />
  );
}

interface LatestProps extends ViewProps {
  turn: Turn;
  number: number;
  /** Why a source that the address names is not shown. */
  notice: string;
  onOpen: Open;
}

/** The present turn: its answer, or its steps so far. */
function LatestTurn({ turn, number, notice, ...props }: LatestProps) {
  const section = useRef<HTMLElement>(null);
  useEffect(() => {
    if (number > 1) section.current?.scrollIntoView({ block: "start" });
  }, [number]);
  return (
    <section ref={section} className="turn" aria-label={`Message ${number}`}>
      <Question level={number}>{turn.question}</Question>
      <Rewritten>{rewrittenIn(props.run.state, turn)}</Rewritten>
      {notice && <p className="hint">{notice}</p>}
      <LatestAnswer {...props} />
    </section>
  );
}

/** A message that was sent while an earlier one is being answered. */
function WaitingTurn({ turn, number }: { turn: Turn; number: number }) {
  return (
    <section className="turn" aria-label={`Message ${number}`}>
      <Question level={number}>{turn.question}</Question>
      <p className="quiet">Waits for the answer to the message before it.</p>
    </section>
  );
}

function Rewritten({ children }: { children: string }) {
  return children && <p className="quiet">Understood as: {children}</p>;
}

type AnswerProps = Omit<LatestProps, "turn" | "number" | "notice">;

/** The answer of the present turn and what can be done with it; until there is one, its steps so far. */
function LatestAnswer({ run, live, outcome, active, answer, problem, onResumed, onBegun, onOpen }: AnswerProps) {
  const { thread } = run;
  if (!answer) {
    return (
      <>
        <Progress live={live} steps={stepsOfTurn(live, thread)} running={active} id={thread.id} />
        <Problem>{problem}</Problem>
        <RunControl run={run} outcome={outcome} active={active} onResumed={onResumed} />
      </>
    );
  }
  return (
    <>
      <AnswerView answer={answer} onOpen={onOpen} />
      <Problem>{problem}</Problem>
      {outcome === "waiting" && <Request thread={thread} answer={answer} onSent={onBegun} />}
      {outcome === "out_of_budget" && (
        <BudgetForm thread={thread} cost={answer.cost} took={answer.seconds} onResumed={onResumed} />
      )}
      {outcome !== "waiting" && (
        <Actions thread={thread} answer={answer} onResumed={onResumed}>
          <Feedback thread={thread} />
        </Actions>
      )}
    </>
  );
}

interface EarlierProps {
  turn: Turn;
  number: number;
  onOpen: Open;
}

/** An earlier turn, with the answer of its run; the message where that is gone, or was made without a run. */
function EarlierTurn({ turn: { question, run: id, text }, number, onOpen }: EarlierProps) {
  const { value: run, status } = useServer<Run>(id && `runs/${id}`);
  const answer = run?.answer;
  return (
    <section className="turn" aria-label={`Message ${number}`}>
      <Question level={number}>{question}</Question>
      {answer ? (
        <>
          <Rewritten>{answer.question === question ? "" : answer.question}</Rewritten>
          <AnswerView answer={answer} label={`Answer ${number}`} onOpen={onOpen} />
          <Actions thread={run.thread} answer={answer} onResumed={() => undefined} />
        </>
      ) : (
        (!id || status !== 0) && <AnswerMarkdown answer={{ text, citations: [] }} onOpen={() => undefined} />
      )}
    </section>
  );
}
