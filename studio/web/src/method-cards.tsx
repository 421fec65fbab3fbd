import { count, seconds } from "./format";
import type { Method } from "./types";

interface Props {
  methods: Method[];
  chosen: string;
  onChoose: (name: string) => void;
}

/** A card for each method, with its use and its typical cost; baselines are folded. */
export function MethodCards({ methods, chosen, onChoose }: Props) {
  const baselines = methods.filter((method) => method.baseline);
  const cards = (shown: Method[]) => (
    <div className="methods">
      {shown.map((method) => (
        <label key={method.name} className="method">
          <input type="radio" name="method" checked={method.name === chosen} onChange={() => onChoose(method.name)} />
          <strong>{method.name}</strong>
          <span>{sentence(method.when || method.summary)}</span>
          <span className="quiet">{costOf(method)}</span>
        </label>
      ))}
    </div>
  );
  return (
    <fieldset className="method-cards">
      <legend>Method</legend>
      {cards(methods.filter((method) => !method.baseline))}
      {baselines.length > 0 && (
        <details>
          <summary>Baselines for comparison</summary>
          {cards(baselines)}
        </details>
      )}
    </fieldset>
  );
}

/** The average of the user's own runs; without any, the typical number of model calls. */
function costOf({ average, calls }: Method): string {
  if (!average) return calls && `Model calls: ${calls}`;
  const time = average.seconds === null ? [] : [seconds(average.seconds)];
  return [`Your runs: ${count(Math.round(average.calls), "call")}`, ...time].join(", ");
}

function sentence(line: string): string {
  return `${line.charAt(0).toUpperCase()}${line.slice(1)}.`;
}
