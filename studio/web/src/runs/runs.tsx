/** All runs: search, filter, compare, export and delete them. */

import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { get, messageOf } from "../api";
import { pauseOf } from "../outcome";
import { Busy, Problem } from "../parts";
import { hrefOf, replace } from "../route";
import { refresh, useServer } from "../server";
import type { Method, Thread } from "../types";
import { FilterForm, filtersIn, queryOf, type Filters } from "./filters";
import { RunTable } from "./run-table";
import { SelectionBar } from "./selection-bar";

const PAGE = 50;

export default function Runs({ query }: { query: URLSearchParams }) {
  const filters = filtersIn(query);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const { value: methods } = useServer<Method[]>("methods");
  const { value: owners } = useServer<string[]>("owners");
  const isOwn = !filters.owner || filters.owner === owners?.[0];
  useEffect(() => {
    refresh("runs?"); // also in the navigation: other programs start runs, too
  }, []);
  const { runs, problem, more, loading } = useRuns(filters);
  const show = (wanted: Filters) => replace(hrefOf("runs", "", wanted));
  const chosen = (runs ?? []).filter((run) => selected.has(run.id));
  return (
    <article className="page">
      <h1>Runs</h1>
      <FilterForm
        filters={filters}
        methods={(methods ?? []).map((each) => each.name)}
        owners={owners ?? []}
        onChange={show}
      />
      {isOwn || <p className="hint">These are the runs of {filters.owner}. Only their owner can open them.</p>}
      <SelectionBar chosen={chosen} onDone={() => setSelected(new Set())} />
      <Problem>{problem}</Problem>
      {runs ? (
        <Found runs={runs} filters={filters} selected={selected} onSelect={isOwn ? setSelected : null} />
      ) : (
        !problem && <Busy>Loading the runs</Busy>
      )}
      {more && (
        <div className="row">
          <button onClick={more} disabled={loading}>
            {loading ? "Loading…" : "Show more"}
          </button>
        </div>
      )}
    </article>
  );
}

interface FoundProps {
  runs: Thread[];
  filters: Filters;
  selected: ReadonlySet<string>;
  onSelect: ((selected: ReadonlySet<string>) => void) | null;
}

function Found({ runs, filters, ...selection }: FoundProps) {
  if (runs.length) return <RunTable runs={runs} {...selection} />;
  return <p className="quiet">{Object.keys(filters).length ? "No run matches." : "No runs yet."}</p>;
}

/** The pages of matching runs that are shown; each page begins after the last run of the one before. */
function useRuns(filters: Filters) {
  const wanted = new URLSearchParams({ limit: String(PAGE), subruns: "false", ...queryOf(filters) }).toString();
  const { data, error, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: [`runs?${wanted}`, "pages"],
    queryFn: ({ pageParam, signal }) => get<Thread[]>(`runs?${wanted}${pageParam}`, signal),
    initialPageParam: "",
    getNextPageParam: (page) => (page.length === PAGE ? after(page.at(-1)) : undefined),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => pauseOf(state.data?.pages.flat()),
  });
  return {
    runs: data?.pages.flat() ?? null,
    problem: error && !data ? messageOf(error) : "",
    loading: isFetchingNextPage,
    more: hasNextPage ? () => void fetchNextPage() : null,
  };
}

function after(last: Thread | undefined): string | undefined {
  return last && `&${new URLSearchParams({ before: last.updated_at, before_id: last.id }).toString()}`;
}
