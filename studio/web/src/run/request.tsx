/** What a run waits for: the approval of its plan, outline or columns, or the answer to a question. */

import { useState } from "react";
import { post } from "../api";
import { isObject, textOf } from "../json";
import { sent } from "./plan";
import { isWrong, PlanEditor } from "./plan-editor";
import { Problem } from "../parts";
import { useAction, type Action } from "../server";
import type { Answer, Json, JsonObject, Thread } from "../types";

interface Props {
  thread: Thread;
  answer: Answer;
  /** The reply was sent: the run continues. */
  onSent: () => void;
}

export function Request({ thread, answer, onSent }: Props) {
  const replying = useAction(async (question: string) => {
    const { values, budget } = thread.options;
    await post("runs", { question, method: thread.method, thread: thread.id, values, budget });
    onSent();
  });
  const list = listIn(answer.asks);
  if (list) return <PlanForm {...list} replying={replying} />;
  const options = Array.isArray(answer.asks?.options) ? answer.asks.options.map(textOf) : [];
  return (
    <div className="row" role="group" aria-label="Replies">
      {options.map((option) => (
        <button key={option} disabled={replying.busy} onClick={() => void replying.run(option)}>
          {option}
        </button>
      ))}
      <Problem>{replying.problem}</Problem>
    </div>
  );
}

/** True if a run shows a list for approval. */
export function asksForApproval({ asks }: Answer): boolean {
  return listIn(asks) !== null;
}

/** The list that waits for approval, and its name. */
function listIn(asks: JsonObject | undefined): { name: string; steps: JsonObject[] } | null {
  const [request] = Array.isArray(asks?.action_requests) ? asks.action_requests : [];
  const [name, steps]: [string, Json?] =
    isObject(request) && isObject(request.args) ? (Object.entries(request.args)[0] ?? [""]) : [""];
  return Array.isArray(steps) ? { name, steps: steps.filter(isObject) } : null;
}

const ABOUT: Record<string, string> = {
  steps: "These steps are planned. Change them if they miss something. #1 stands for the finding of step 1.",
  sections: "These sections are planned. Each question is researched on its own. Change them if they miss something.",
  columns: "Each document is asked these questions. Change them if they miss something.",
};

interface PlanProps {
  name: string;
  steps: JsonObject[];
  replying: Action<[string]>;
}

/** The plan of a run, to be changed and carried out, or rejected. */
function PlanForm({ name, steps: shown, replying }: PlanProps) {
  const [steps, setSteps] = useState(shown);
  const changed = JSON.stringify(steps) !== JSON.stringify(shown);
  return (
    <form
      className="stack plan"
      aria-label="Plan"
      onSubmit={(event) => {
        event.preventDefault();
        void replying.run(changed ? JSON.stringify(name === "steps" ? sent(steps) : steps.map(named)) : "approve");
      }}
    >
      <p>{ABOUT[name]}</p>
      <PlanEditor steps={steps} noun={name === "steps" ? "step" : "question"} onChange={setSteps} />
      <div className="row">
        <button className="primary" disabled={replying.busy || isWrong(steps)}>
          {name === "steps" ? "Carry out the plan" : "Go on"}
        </button>
        <button type="button" disabled={replying.busy} onClick={() => void replying.run("reject")}>
          Reject
        </button>
      </div>
      <Problem>{replying.problem}</Problem>
    </form>
  );
}

/** A section or column as the server takes it: nothing builds on another one. */
function named(row: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(row).filter(([key]) => key !== "needs"));
}
