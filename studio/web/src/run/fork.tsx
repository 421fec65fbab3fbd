/** Form to change the state after a step and run a branch from there. */

import { useState } from "react";
import { post } from "../api";
import { changesOf, isChanged } from "../edits";
import { words } from "../format";
import { Problem } from "../parts";
import { go, hrefOf } from "../route";
import { refresh, useAction } from "../server";
import type { Texts } from "../texts";
import type { Checkpoint, JsonObject, Method, Thread } from "../types";
import { listedPlan, storedPlan } from "./plan";
import { isWrong, PlanEditor } from "./plan-editor";
import { titleOfNode } from "./sentences";
import { CHAT } from "./turns";
import { ValueEditor } from "./value-editor";

const FIXED = new Set(["calls", "schema_version", "searches", "warnings"]);
const PLAN = "plan";

interface Props {
  thread: Thread;
  checkpoint: Checkpoint;
  next: string[];
  /** The fields that the step changed: they are open to be edited. */
  own: string[];
  methods: Method[];
  texts: Texts;
  onBegun: () => void;
}

export function ForkForm({ thread, checkpoint, next, own, methods, texts, onBegun }: Props) {
  const [edits, setEdits] = useState<JsonObject>({});
  const [steps, setSteps] = useState<JsonObject[] | null>(null);
  const [method, setMethod] = useState(thread.method);
  const forking = useAction(async () => {
    const state = changesOf(edits, checkpoint.values);
    // A branch is a run of its own, so that this one keeps its answer; only a chat continues in its thread.
    const other = method !== thread.method ? { method } : method === CHAT ? {} : { name: newName() };
    const made = await post<{ thread: string; checkpoint: string }>(`runs/${thread.id}/fork`, {
      at: checkpoint.checkpoint,
      state,
      ...other,
    });
    await post(`runs/${made.thread}/resume`);
    refresh("runs?");
    if (made.thread === thread.id) onBegun();
    go(hrefOf("runs", made.thread));
  });
  const plan = own.includes(PLAN) ? listedPlan(checkpoint.values[PLAN]) : null;
  const fields = Object.keys(checkpoint.values)
    .filter((name) => !FIXED.has(name) && !(plan && name === PLAN))
    .sort((a, b) => Number(own.includes(b)) - Number(own.includes(a)))
    .map((name) => (
      <ValueEditor
        key={name}
        path={words(name)}
        label={isChanged(edits[name], checkpoint.values[name]) ? `${words(name)}, changed` : words(name)}
        open={own.includes(name)}
        value={edits[name] ?? checkpoint.values[name] ?? null}
        texts={texts}
        onEdit={(value) => setEdits({ ...edits, [name]: value })}
      />
    ));
  return (
    <form
      className="fork stack"
      aria-label="Fork"
      onSubmit={(event) => {
        event.preventDefault();
        void forking.run();
      }}
    >
      <p className="quiet">
        The branch starts from the state after this step with your changes
        {next.length > 0 && method === thread.method ? `; next: ${next.map(titleOfNode).join(", ")}` : ""}. The original
        run and its answer are unchanged.
      </p>
      {plan ? (
        <section className="plan" aria-label="Plan">
          <PlanEditor
            steps={steps ?? plan}
            noun="step"
            onChange={(changed) => {
              setSteps(changed);
              setEdits({ ...edits, [PLAN]: storedPlan(changed, plan) });
            }}
          />
        </section>
      ) : (
        fields
      )}
      {plan && (
        <details>
          <summary>The rest of the state</summary>
          {fields}
        </details>
      )}
      <div className="row">
        <label className="inline">
          Continue with
          <select value={method} onChange={(event) => setMethod(event.target.value)}>
            {methods.map((each) => (
              <option key={each.name}>{each.name}</option>
            ))}
          </select>
        </label>
        <button className="primary" disabled={forking.busy || isWrong(steps ?? [])}>
          {forking.busy ? "Forking…" : "Fork and run"}
        </button>
      </div>
      <Problem>{forking.problem}</Problem>
    </form>
  );
}

/** A name for a thread; browsers give pages without HTTPS no UUIDs. */
function newName(): string {
  return [...crypto.getRandomValues(new Uint8Array(6))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
