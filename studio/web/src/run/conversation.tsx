/** A run's place in its conversation: what was asked before it, what followed, and the box to ask on. */

import { useState } from "react";
import { post } from "../api";
import { spent } from "../format";
import { Chip, Problem } from "../parts";
import { QuestionField } from "../question-field";
import { go, hrefOf } from "../route";
import { runsChanged } from "../run-list";
import type { Cost, Method, Run, Thread, Turn } from "../types";
import { useAction, useLoaded } from "../use";
import { Said } from "./answer";

/** The runs that lead to this one, the first one first. */
export function before(turns: readonly Turn[], id: string): Turn[] {
  const byId = new Map(turns.map((turn) => [turn.thread.id, turn]));
  const way: Turn[] = [];
  const from = (turn: Turn | undefined) => byId.get(turn?.after ?? "");
  for (let at = from(byId.get(id)); at && !way.includes(at); at = from(at)) way.unshift(at);
  return way;
}

export function Earlier({ turns, id }: { turns: readonly Turn[]; id: string }) {
  return before(turns, id).map((turn) => (
    <article key={turn.thread.id} className="turn stack">
      <h2>{turn.asked}</h2>
      <p className="row meta">
        <Understood asked={turn.asked} question={turn.thread.question} />
        <a href={hrefOf("runs", turn.thread.id)}>Open this run</a>
      </p>
      {turn.answer ? (
        <Said answer={turn.answer} label={`Earlier: ${turn.asked}`} />
      ) : (
        <p>
          <Chip status={turn.thread.state} />
        </p>
      )}
    </article>
  ));
}

/** How a follow-up was understood, where that is not what was asked, and what it took. */
export function Understood({ asked, question, cost }: { asked: string; question: string; cost?: Cost | undefined }) {
  if (asked === question) return null;
  return (
    <span className="quiet">
      Understood as: {question} {cost && <small>({spent(cost)})</small>}
    </span>
  );
}

export function Later({ turns, id }: { turns: readonly Turn[]; id: string }) {
  const followed = turns.filter((turn) => turn.after === id);
  if (!followed.length) return null;
  return (
    <section aria-labelledby="later">
      <h2 id="later">Asked after this</h2>
      <ul>
        {followed.map(({ thread, asked }) => (
          <li key={thread.id}>
            <a href={hrefOf("runs", thread.id)}>{asked}</a> <Chip status={thread.state} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface Props {
  run: Run;
  /** A chat has taken the message: it is the same run that goes on. */
  onSaid: () => void;
}

/** Asks on in the same conversation: what refers to it is understood. The method and its settings stay, unless changed. */
export function AskOn({ run, onSaid }: Props) {
  const { thread } = run;
  const { value: methods } = useLoaded<Method[]>("methods");
  const [question, setQuestion] = useState("");
  const [method, setMethod] = useState(thread.method);
  const asking = useAction(async () => {
    const made = await post<{ thread: string }>("runs", { question, method, ...placeOf(thread, method) });
    setQuestion("");
    runsChanged();
    if (made.thread === thread.id) onSaid();
    else go(hrefOf("runs", made.thread));
  });
  const submit = (event: React.SyntheticEvent) => {
    event.preventDefault();
    if (question.trim() && !asking.busy) void asking.run();
  };
  return (
    <form className="ask-on stack" aria-label="Ask on" onSubmit={submit}>
      <QuestionField
        label="Ask on in this conversation"
        rows={2}
        value={question}
        onType={setQuestion}
        onSubmit={submit}
      />
      <div className="row spread">
        {thread.method === CHAT ? (
          <span className="quiet">The chat takes the next message.</span>
        ) : (
          <label className="inline">
            Method
            <select
              value={method}
              onChange={(event) => {
                setMethod(event.target.value);
              }}
            >
              {(methods ?? [{ name: method }]).map((each) => (
                <option key={each.name}>{each.name}</option>
              ))}
            </select>
          </label>
        )}
        <button className="primary" disabled={asking.busy || !question.trim()}>
          {asking.busy ? "Understanding the question…" : "Ask on"}
        </button>
      </div>
      <Problem>{asking.problem}</Problem>
    </form>
  );
}

const CHAT = "chat";

/** A chat goes on in its own thread; any other follow-up is a run of its own, with the same settings and limits. */
function placeOf({ id, method: before, options }: Thread, method: string) {
  if (before === CHAT) return { thread: id, budget: options.budget };
  return { after: id, budget: options.budget, ...(method === before && { values: options.values }) };
}
