/** Form to change the state after a step and run a branch from there. */

import { useState } from "react";
import { post } from "../api";
import { changesOf, problemIn, type Edits } from "../edits";
import { Problem } from "../parts";
import { go, hrefOf } from "../route";
import type { Checkpoint, Method, Thread } from "../types";
import { refresh, useAction } from "../server";

const FIXED = new Set(["calls", "schema_version", "warnings"]);

interface Props {
  thread: Thread;
  checkpoint: Checkpoint;
  next: string[];
  /** The fields that the step changed: they are open to be edited. */
  own: string[];
  methods: Method[];
  onBegun: () => void;
}

export function ForkForm({ thread, checkpoint, next, own, methods, onBegun }: Props) {
  const [edits, setEdits] = useState<Edits>({});
  const [method, setMethod] = useState(thread.method);
  const wrong = Object.keys(edits).some((name) => problemIn(edits[name]));
  const forking = useAction(async () => {
    const state = changesOf(edits, checkpoint.values);
    const other = method === thread.method ? {} : { method };
    const made = await post<{ thread: string; checkpoint: string }>(`runs/${thread.id}/fork`, {
      at: checkpoint.checkpoint,
      state,
      ...other,
    });
    await post(`runs/${made.thread}/resume`);
    refresh("runs?");
    if (made.thread === thread.id) onBegun();
    go(hrefOf("runs", made.thread, { tab: "explore" }));
  });
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
        The branch starts from the state after this step with your changes, and continues
        {next.length > 0 && method === thread.method ? ` with ${next.join(", ")}` : ""}. The original run is unchanged.
      </p>
      {Object.keys(checkpoint.values)
        .filter((name) => !FIXED.has(name))
        .sort((a, b) => Number(own.includes(b)) - Number(own.includes(a)))
        .map((name) => (
          <FieldEditor
            key={name}
            name={name}
            text={edits[name] ?? JSON.stringify(checkpoint.values[name], null, 2)}
            changed={name in edits}
            own={own.includes(name)}
            onEdit={(text) => {
              setEdits({ ...edits, [name]: text });
            }}
          />
        ))}
      <div className="row">
        <label className="inline">
          Continue with
          <select
            value={method}
            onChange={(event) => {
              setMethod(event.target.value);
            }}
          >
            {methods.map((each) => (
              <option key={each.name}>{each.name}</option>
            ))}
          </select>
        </label>
        <button className="primary" disabled={wrong || forking.busy}>
          {forking.busy ? "Forking…" : "Fork and run"}
        </button>
      </div>
      <Problem>{forking.problem}</Problem>
    </form>
  );
}

interface FieldProps {
  name: string;
  text: string;
  changed: boolean;
  own: boolean;
  onEdit: (text: string) => void;
}

function FieldEditor({ name, text, changed, own, onEdit }: FieldProps) {
  const problem = changed ? problemIn(text) : "";
  return (
    <details className="box" open={changed || own}>
      <summary>
        {name} {changed && <span className="chip is-changed">changed</span>}
      </summary>
      <label>
        <span className="unseen">{name} as JSON</span>
        <textarea
          className="code"
          spellCheck={false}
          rows={Math.min(16, text.split("\n").length + 1)}
          value={text}
          aria-invalid={Boolean(problem)}
          onChange={(event) => {
            onEdit(event.target.value);
          }}
        />
      </label>
      {problem && <p className="wrong">{problem}</p>}
    </details>
  );
}
