import type { Budget } from "./types";

export type Limits = Partial<Record<keyof Budget, string>>;

const LIMITS: { name: keyof Budget; label: string }[] = [
  { name: "max_calls", label: "maximum model calls" },
  { name: "max_tokens", label: "maximum tokens" },
  { name: "max_seconds", label: "maximum seconds" },
];

interface Props {
  limits: Limits;
  onType: (limits: Limits) => void;
}

/** Form for a budget; an empty field means no limit. */
export function LimitsForm({ limits, onType }: Props) {
  return (
    <fieldset className="limits">
      <legend>Budget</legend>
      {LIMITS.map(({ name, label }) => (
        <label key={name}>
          {label}
          <input
            type="number"
            min={1}
            placeholder="no limit"
            value={limits[name] ?? ""}
            onChange={(event) => onType({ ...limits, [name]: event.target.value })}
          />
        </label>
      ))}
    </fieldset>
  );
}

export function budgetOf(limits: Limits): Partial<Budget> {
  const given = Object.entries(limits).filter(([, text]) => text);
  return Object.fromEntries(given.map(([name, text]) => [name, Number(text)]));
}

export function limitsOf(budget: Budget): Limits {
  const set = Object.entries(budget).filter(([, number]) => number !== null);
  return Object.fromEntries(set.map(([name, number]) => [name, String(number)]));
}
