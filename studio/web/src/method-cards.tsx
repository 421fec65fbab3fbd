import { seconds } from "./format";
import { sentence } from "./schema";
import type { Method } from "./types";

/** The method that is used if none is chosen. */
export const DEFAULT = "auto";

/** The baseline that people also use, because it is fast. */
const FAST = "plain-rag";

interface Props {
  methods: Method[];
  chosen: string;
  onChoose: (name: string) => void;
}

/** The methods by what they do, with their names and what they took; other baselines are folded. */
export function MethodCards({ methods, chosen, onChoose }: Props) {
  const baselines = methods.filter((method) => !isMain(method));
  const cards = (shown: Method[]) => (
    <div className="methods">
      {shown.map((method) => (
        <label key={method.name} className="method">
          <input type="radio" name="method" checked={method.name === chosen} onChange={() => onChoose(method.name)} />
          <span>{whatItDoes(method)}</span>
          <small className="quiet">
            <span className="code">{method.name}</span> {costOf(method)}
          </small>
        </label>
      ))}
    </div>
  );
  return (
    <fieldset className="method-cards">
      <legend className="unseen">Method</legend>
      {cards(methods.filter(isMain))}
      {baselines.length > 0 && (
        <details>
          <summary>Baselines for comparison</summary>
          {cards(baselines)}
        </details>
      )}
    </fieldset>
  );
}

function isMain({ baseline, name }: Method): boolean {
  return !baseline || name === FAST;
}

/** The methods with those first that people use most. */
export function inOrder(methods: readonly Method[]): Method[] {
  const rank = (method: Method) => (method.name === DEFAULT ? 0 : isMain(method) ? 1 : 2);
  return [...methods].sort((a, b) => rank(a) - rank(b));
}

/** What a method does, as a sentence. */
export function whatItDoes({ summary }: Pick<Method, "summary">): string {
  return sentence(summary.replace(" (baseline)", ""));
}

/** The average of the user's own runs; without any, the typical number of model calls. */
function costOf({ average, calls }: Method): string {
  if (typeof average?.seconds === "number") return `${seconds(average.seconds)} in your runs`;
  return calls && `${calls.split(";")[0]} model calls`;
}
