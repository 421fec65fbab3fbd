import { useEffect, useRef, useState } from "react";
import { OUTCOMES, statusInWords, WEAK } from "../outcome";
import { parse } from "../route";

const NAMES = ["find", "status", "method", "since", "until", "owner"] as const;

/** What the list is filtered by, as the address and the API name it; without empty values. */
export type Filters = Partial<Record<(typeof NAMES)[number], string>>;

export function filtersIn(query: URLSearchParams): Filters {
  const given = NAMES.map((name) => [name, query.get(name) ?? ""] as const);
  return Object.fromEntries(given.filter(([, value]) => value));
}

/** The outcomes, and answers that their sources support only weakly. */
const STATUSES = [...OUTCOMES.slice(0, 1), WEAK, ...OUTCOMES.slice(1)];

/** The filters as the API takes them: `until` is the day after the last one, and weak support is no outcome. */
export function queryOf({ status, ...others }: Filters): Record<string, string> {
  return { ...lastDayOf(others), ...(status === WEAK ? { [WEAK]: "true" } : status && { status }) };
}

function lastDayOf(filters: Filters): Filters {
  const last = filters.until ? new Date(filters.until) : null;
  if (!last || Number.isNaN(last.getTime())) return filters;
  last.setUTCDate(last.getUTCDate() + 1);
  return { ...filters, until: last.toISOString() };
}

const PAUSE = 250;

interface Props {
  filters: Filters;
  methods: string[];
  /** Those whose runs may be listed, the user first. */
  owners: string[];
  onChange: (filters: Filters) => void;
}

/** Fields that filter the list while they are changed. */
export function FilterForm({ filters, methods, owners, onChange }: Props) {
  const change = (name: keyof Filters, value: string) => {
    // Those of the address: a search that is still being typed was made before another filter was changed.
    const current = filtersIn(parse(location.hash).query);
    onChange(filtersIn(new URLSearchParams({ ...current, [name]: value })));
  };
  return (
    <form role="search" className="filters" aria-label="Runs" onSubmit={(event) => event.preventDefault()}>
      <SearchField text={filters.find ?? ""} onType={(text) => change("find", text)} />
      <Choice
        label="Status"
        value={filters.status ?? ""}
        options={STATUSES}
        onChoose={(value) => change("status", value)}
      />
      <Choice
        label="Method"
        value={filters.method ?? ""}
        options={methods}
        onChoose={(value) => change("method", value)}
      />
      {owners.length > 1 && (
        <Choice
          label="Owner"
          none={`${owners[0]} (you)`}
          value={filters.owner ?? ""}
          options={owners.slice(1)}
          onChoose={(value) => change("owner", value)}
        />
      )}
      {(["since", "until"] as const).map((name) => (
        <label key={name}>
          {name === "since" ? "From" : "To"}
          <input type="date" value={filters[name] ?? ""} onChange={(event) => change(name, event.target.value)} />
        </label>
      ))}
    </form>
  );
}

function SearchField({ text, onType }: { text: string; onType: (text: string) => void }) {
  const [typed, setTyped] = useState(text);
  const [last, setLast] = useState(text);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  if (text !== last) {
    setLast(text);
    if (!text) setTyped(""); // the filters were cleared
  }
  return (
    <label className="wide">
      Search questions and answers
      <input
        type="search"
        maxLength={200}
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value);
          clearTimeout(timer.current);
          timer.current = window.setTimeout(onType, PAUSE, event.target.value);
        }}
      />
    </label>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  options: readonly string[];
  /** The label of the option that does not filter. */
  none?: string;
  onChoose: (value: string) => void;
}

function Choice({ label, value, options, none = "any", onChoose }: ChoiceProps) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChoose(event.target.value)}>
        <option value="">{none}</option>
        {options.map((option) => (
          <option key={option} value={option}>
            {label === "Owner" ? option : statusInWords(option)}
          </option>
        ))}
      </select>
    </label>
  );
}
