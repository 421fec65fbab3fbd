import { hrefOf } from "./route";

/** The page of an address that leads nowhere. */
export function NotFound({ title, children }: { title: string; children?: string }) {
  return (
    <article className="page">
      <h1>{title}</h1>
      {children && <p>{children}</p>}
      <p>
        <a href={hrefOf("")}>Ask a question</a>, or look at the <a href={hrefOf("runs")}>runs</a> or the{" "}
        <a href={hrefOf("documents")}>documents</a>.
      </p>
    </article>
  );
}
