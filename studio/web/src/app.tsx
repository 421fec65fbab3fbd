/** The page: navigation, the latest runs, and the view of the current address. */

import { useEffect, useRef, useState } from "react";
import { onUnauthorized } from "./api";
import { Ask } from "./ask";
import { Documents } from "./documents/documents";
import { KeyDialog } from "./key-dialog";
import { hrefOf, usePlace, type Place } from "./route";
import { RunPage } from "./run/run";
import { RunList } from "./run-list";

const VIEWS = [
  { view: "", label: "Ask" },
  { view: "runs", label: "Runs" },
  { view: "documents", label: "Documents" },
];

export function App() {
  const place = usePlace();
  const [locked, setLocked] = useState(false);
  const [session, setSession] = useState(0);
  useEffect(() => {
    onUnauthorized(() => {
      setLocked(true);
    });
  }, []);
  useFocusOnChange(`${place.view}/${place.id}`);
  const unlock = () => {
    setLocked(false);
    setSession((before) => before + 1);
  };
  return (
    <div className="frame" key={session}>
      <a className="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <header className="side">
        <a className="brand" href={hrefOf("")}>
          <img src="./favicon.svg" alt="" width="24" height="24" /> sleuth
        </a>
        <nav aria-label="Views">
          {VIEWS.map(({ view, label }) => (
            <a key={label} href={hrefOf(view)} aria-current={isAt(place, view) ? "page" : undefined}>
              {label}
            </a>
          ))}
        </nav>
        <section className="recent" aria-label="Latest runs">
          <RunList current={place.view === "runs" ? place.id : ""} />
        </section>
      </header>
      <main id="main" tabIndex={-1}>
        <View place={place} />
      </main>
      {locked && <KeyDialog onKey={unlock} />}
    </div>
  );
}

/** Move the focus to a new view, as a browser does on a new page. */
function useFocusOnChange(view: string) {
  const last = useRef(view);
  useEffect(() => {
    if (last.current !== view) document.getElementById("main")?.focus();
    last.current = view;
  }, [view]);
}

function isAt(place: Place, view: string): boolean {
  return place.view === view && !place.id;
}

/** Skip without changing the address, which contains the view. */
function skip(event: React.MouseEvent) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function View({ place }: { place: Place }) {
  if (place.view === "documents") return <Documents ingest={place.query.get("ingest") ?? ""} />;
  if (place.view !== "runs") return <Ask />;
  if (place.id) return <RunPage key={place.id} id={place.id} query={place.query} />;
  return (
    <article className="page">
      <h1>Runs</h1>
      <RunList current="" />
    </article>
  );
}
