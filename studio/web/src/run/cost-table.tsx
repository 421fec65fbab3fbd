import { modelTime, seconds } from "../format";
import type { Cost } from "../types";
import { workOf } from "./sentences";

/** Calls, tokens and model time of each kind of step, and the duration of the run. */
export function CostTable({ cost, took }: { cost: Cost; took?: number | null | undefined }) {
  const rows = Object.entries(cost.nodes).map(([node, part]) => [workOf(node, false), part] as const);
  return (
    <details className="box" open>
      <summary>Cost{typeof took === "number" && `: ${seconds(took)}`}</summary>
      <div className="scroll" role="region" aria-label="Cost" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">step</th>
              <th scope="col">calls</th>
              <th scope="col">prompt tokens</th>
              <th scope="col">reply tokens</th>
              <th scope="col">model time</th>
            </tr>
          </thead>
          <tbody>
            {[...rows, ["Total", cost] as const].map(([name, part], at) => (
              <tr key={at}>
                <th scope="row">{name}</th>
                <td>{part.calls}</td>
                <td>{part.prompt_tokens}</td>
                <td>{part.completion_tokens}</td>
                <td>{modelTime(part)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
