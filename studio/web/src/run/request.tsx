/** What a chat waits for: the approval of its plan, or the answer to a question. */

import { useState } from "react";
import { post } from "../api";
import { isObject, textOf } from "../json";
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
  const steps = stepsIn(answer.asks);
  if (steps) return <PlanForm steps={steps} replying={replying} />;
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

/** True if a chat shows its plan for approval. */
export function asksForApproval({ asks }: Answer): boolean {
  return stepsIn(asks) !== null;
}

function stepsIn(asks: JsonObject | undefined): JsonObject[] | null {
  const [request] = Array.isArray(asks?.action_requests) ? asks.action_requests : [];
  const steps: Json | undefined = isObject(request) && isObject(request.args) ? request.args.steps : undefined;
  return Array.isArray(steps) ? steps.filter(isObject) : null;
}

interface PlanProps {
  steps: JsonObject[];
  replying: Action<[string]>;
}

/** The plan of a run, to be changed and carried out, or rejected. */
function PlanForm({ steps, replying }: PlanProps) {
  const [questions, setQuestions] = useState(() => steps.map((step) => textOf(step.question)));
  const changed = questions.some((question, at) => question !== textOf(steps[at]?.question));
  const edited = steps.map((step, at) => ({ ...step, question: questions[at] ?? "" }));
  return (
    <form
      className="stack plan"
      aria-label="Plan"
      onSubmit={(event) => {
        event.preventDefault();
        void replying.run(changed ? JSON.stringify(edited) : "approve");
      }}
    >
      <p>These steps are planned. Change them if they miss something. #1 stands for the finding of step 1.</p>
      <ol>
        {questions.map((question, at) => (
          <li key={at}>
            <input
              aria-label={`Step ${at + 1}`}
              required
              maxLength={2000}
              value={question}
              onChange={(event) => {
                setQuestions(questions.with(at, event.target.value));
              }}
            />
          </li>
        ))}
      </ol>
      <div className="row">
        <button className="primary" disabled={replying.busy}>
          Carry out the plan
        </button>
        <button type="button" disabled={replying.busy} onClick={() => void replying.run("reject")}>
          Reject
        </button>
      </div>
      <Problem>{replying.problem}</Problem>
    </form>
  );
}
