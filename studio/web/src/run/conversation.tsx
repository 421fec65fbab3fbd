/** The conversation of a run: earlier turns, follow-ups, and the form for the next one. */

import { useState } from "react";
import { post } from "../api";
import { DEFAULT } from "../ask";
import { useDraft } from "../drafts";
import { Problem, RunChip } from "../parts";
import { isSendable, QuestionField } from "../question-field";
import { go, hrefOf } from "../route";
import type { Method, Run, Thread, Turn } from "../types";
import { refresh, useAction, useServer } from "../server";
import { AnswerView } from "./answer";
import { SURVEY } from "./survey";

/** The runs that this one follows up on, the first one first. */
export function before(turns: readonly Turn[], id: string): Turn[] {
  const byId = new Map(turns.map((turn) => [turn.thread.id, turn]));
  const path: Turn[] = [];
  const from = (turn: Turn | undefined) => byId.get(turn?.after ?? "");
  for (let at = from(byId.get(id)); at && !path.includes(at); at = from(at)) path.unshift(at);
  return path;
}

export function Earlier({ turns, id }: { turns: readonly Turn[]; id: string }) {
  return before(turns, id).map((turn) => (
    <article key={turn.thread.id} className="turn stack">
      <h2>{turn.asked}</h2>
      <p className="row meta">
        <RewrittenQuestion asked={turn.asked} question={turn.thread.question} />
        <a href={hrefOf("runs", turn.thread.id)}>Open this run</a>
      </p>
      {turn.answer ? (
        <AnswerView answer={turn.answer} label={`Earlier: ${turn.asked}`} folded />
      ) : (
        <p>
          <RunChip run={turn.thread} />
        </p>
      )}
    </article>
  ));
}

/** The rewritten question of a follow-up. */
export function RewrittenQuestion({ asked, question }: { asked: string; question: string }) {
  if (asked === question) return null;
  return <span className="quiet">Rewritten as: {question}</span>;
}

export function Later({ turns, id }: { turns: readonly Turn[]; id: string }) {
  const followed = turns.filter((turn) => turn.after === id);
  if (!followed.length) return null;
  return (
    <section aria-labelledby="later">
      <h2 id="later">Follow-ups</h2>
      <ul>
        {followed.map(({ thread, asked }) => (
          <li key={thread.id}>
            <a href={hrefOf("runs", thread.id)}>{asked}</a> <RunChip run={thread} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface Props {
  run: Run;
  /** Called when a chat has received the message: the same run continues. */
  onSent: () => void;
}

/** Form for a follow-up in the same conversation, by default with the same method and settings; not with a survey. */
export function FollowUpForm({ run, onSent }: Props) {
  const { thread } = run;
  const { value: methods } = useServer<Method[]>("methods");
  const [question, setQuestion] = useDraft(`after ${thread.id}`);
  const [method, setMethod] = useState(thread.method === SURVEY ? DEFAULT : thread.method);
  const asking = useAction(async () => {
    const made = await post<{ thread: string }>("runs", { question, method, ...placeOf(thread, method) });
    setQuestion("");
    refresh("runs?");
    if (made.thread === thread.id) onSent();
    else go(hrefOf("runs", made.thread));
  });
  const submit = (event: React.SyntheticEvent) => {
    event.preventDefault();
    if (isSendable(question) && !asking.busy) void asking.run();
  };
  return (
    <form className="follow-up stack" aria-label="Ask a follow-up" onSubmit={submit}>
      <QuestionField label="Follow-up question" rows={2} value={question} onType={setQuestion} onSubmit={submit} />
      <div className="row spread">
        {thread.method === CHAT ? (
          <span className="quiet">The next message of this chat.</span>
        ) : (
          <label className="inline">
            Method
            <select value={method} onChange={(event) => setMethod(event.target.value)}>
              {(methods ?? [{ name: method }]).map((each) => (
                <option key={each.name}>{each.name}</option>
              ))}
            </select>
          </label>
        )}
        <button className="primary" disabled={asking.busy || !isSendable(question)}>
          {asking.busy ? "Rewriting the question…" : "Ask a follow-up"}
        </button>
      </div>
      <Problem>{asking.problem}</Problem>
    </form>
  );
}

const CHAT = "chat";

/** A chat continues in its thread; other follow-ups are separate runs with the same settings and limits. */
function placeOf({ id, method: before, options }: Thread, method: string) {
  if (before === CHAT) return { thread: id, budget: options.budget };
  return { after: id, budget: options.budget, ...(method === before && { values: options.values }) };
}
