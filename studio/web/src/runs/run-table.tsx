import { count, seconds, when } from "../format";
import { lookOfRun } from "../outcome";
import { Chip } from "../parts";
import { hrefOf } from "../route";
import type { Thread } from "../types";

interface Props {
  runs: Thread[];
  selected: ReadonlySet<string>;
  /** Null for the runs of someone else: they cannot be selected or opened. */
  onSelect: ((selected: ReadonlySet<string>) => void) | null;
}

export function RunTable({ runs, selected, onSelect }: Props) {
  const all = runs.map((run) => run.id);
  const toggle = (ids: string[], add: boolean) => {
    const others = [...selected].filter((id) => !ids.includes(id));
    onSelect?.(new Set(add ? [...others, ...ids] : others));
  };
  return (
    <table className="run-table cards">
      <thead>
        <tr>
          <th scope="col">
            <input
              type="checkbox"
              aria-label="Select all runs"
              disabled={!onSelect}
              checked={all.every((id) => selected.has(id))}
              onChange={(event) => toggle(all, event.target.checked)}
            />
          </th>
          <th scope="col">question and answer</th>
          <th scope="col">status</th>
          <th scope="col">method</th>
          <th scope="col">cost</th>
          <th scope="col">time</th>
          <th scope="col">last changed</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <Row
            key={run.id}
            run={run}
            selected={selected.has(run.id)}
            onSelect={onSelect && ((add) => toggle([run.id], add))}
          />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  run: Thread;
  selected: boolean;
  onSelect: ((add: boolean) => void) | null;
}

function Row({ run, selected, onSelect }: RowProps) {
  const { question } = run;
  return (
    <tr>
      <td>
        <input
          type="checkbox"
          aria-label={`Select: ${question}`}
          disabled={!onSelect}
          checked={selected}
          onChange={(event) => onSelect?.(event.target.checked)}
        />
      </td>
      <th scope="row">
        {onSelect ? (
          <a className="clamp" href={hrefOf("runs", run.id)}>
            {run.title || question}
          </a>
        ) : (
          <span className="clamp">{question}</span>
        )}
        {run.answer && <span className="clamp">{run.answer}</span>}
      </th>
      <td>
        <Chip status={lookOfRun(run)} />
      </td>
      <td>{run.method}</td>
      <td>
        {run.calls !== null && (
          <>
            {count(run.calls, "call")} <span className="quiet">{count(run.tokens ?? 0, "token")}</span>
          </>
        )}
      </td>
      <td>{run.seconds !== null && seconds(run.seconds)}</td>
      <td>
        <time dateTime={run.updated_at}>{when(run.updated_at)}</time>
      </td>
    </tr>
  );
}
