/** One step: what it changed, its model calls, its evidence, the state after it, and the fork. */

import { useState } from "react";
import { pathTo } from "../branches";
import { fresh, linesOf } from "../changes";
import { words } from "../format";
import { Problem } from "../parts";
import { textsOf, type Texts } from "../texts";
import type { Checkpoint, JsonObject, Method, Moment, Thread } from "../types";
import { useServer } from "../server";
import { Calls } from "./calls";
import { Evidence } from "./evidence";
import { ForkForm } from "./fork";
import { KnowledgeGraph } from "./knowledge-graph";
import { titleOfNode } from "./sentences";
import { Names, titleOf } from "./timeline";
import { ValueEditor } from "./value-editor";

interface Props {
  thread: Thread;
  moment: Moment;
  history: Moment[];
  methods: Method[];
  /** The form for a fork is open from the beginning. */
  isForking: boolean;
  onBegun: () => void;
  /** The reader works with this step. */
  onUsed: () => void;
}

export function StepDetails({ thread, moment, history, methods, isForking, onBegun, onUsed }: Props) {
  const [forking, setForking] = useState(isForking);
  const base = `runs/${thread.id}/checkpoints`;
  const { value: after, problem } = useServer<Checkpoint>(`${base}/${moment.checkpoint}`);
  const { value: before } = useServer<Checkpoint>(moment.parent && `${base}/${moment.parent}`);
  const { value: exported } = useServer<{ texts: Record<string, string> }>(`runs/${thread.id}/export`);
  const texts = textsOf(exported?.texts ?? {});
  const changed = fresh(moment, pathTo(history, moment.checkpoint));
  const lines = linesOf(changed);
  return (
    <section aria-labelledby="step" className="details" onFocus={onUsed}>
      <header className="row spread">
        <h2 id="step">
          {titleOf(moment, changed)} <Names nodes={moment.node} />
          {moment.next.length > 0 && (
            <span className="quiet"> then {moment.next.map((node) => titleOfNode(node).toLowerCase()).join(", ")}</span>
          )}
        </h2>
        <button
          aria-expanded={forking}
          onClick={() => {
            onUsed();
            setForking(!forking);
          }}
        >
          Change the state and fork
        </button>
      </header>
      <Problem>{problem}</Problem>
      {forking && after && (
        <ForkForm
          thread={thread}
          checkpoint={after}
          next={moment.next}
          own={Object.keys(changed)}
          methods={methods}
          texts={texts}
          onBegun={onBegun}
        />
      )}
      {lines.length > 0 && (
        <ul className="changes" aria-label="Changes">
          {lines.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      {after && <KnowledgeGraph state={after.values} />}
      {after && <Calls calls={after.calls} />}
      <Evidence texts={texts} changed={changed} />
      <State title="State before" state={before?.values} texts={texts} />
      <State title="State after" state={after?.values} texts={texts} />
    </section>
  );
}

/** A state, which only a fork changes. */
function State({ title, state, texts }: { title: string; state: JsonObject | undefined; texts: Texts }) {
  if (!state) return null;
  return (
    <details className="box">
      <summary>{title}</summary>
      <fieldset disabled className="group">
        {Object.entries(state).map(([name, value]) => (
          <ValueEditor
            key={name}
            path={`${title} ${name}`}
            label={words(name)}
            value={value}
            texts={texts}
            onEdit={ignore}
          />
        ))}
      </fieldset>
    </details>
  );
}

const ignore = () => undefined;
