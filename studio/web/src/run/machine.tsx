import { useMemo } from "react";
import { visits } from "../branches";
import { Diagram, type Arrow, type Shape } from "../diagram/diagram";
import { titleOfNode } from "./sentences";
import type { Method, Moment } from "../types";

interface Props {
  method: Method;
  path: Moment[];
  chosen: string;
  onChoose: (checkpoint: string) => void;
}

/** A method's state machine with the path of a branch: visited nodes, their order, and the next node. */
export function Machine({ method, path, chosen, onChoose }: Props) {
  const { shapes, arrows } = useMemo(() => drawing(method, path, chosen, onChoose), [method, path, chosen, onChoose]);
  return <Diagram label={`State machine of ${method.name}`} shapes={shapes} arrows={arrows} />;
}

const ENDS: Record<string, string> = { __start__: "start", __end__: "end" };

function drawing(method: Method, path: Moment[], chosen: string, onChoose: (checkpoint: string) => void) {
  const names = new Set([...method.graph.nodes, ...method.graph.edges.flatMap((edge) => [edge.from, edge.to])]);
  const steps = visits(path);
  const head = path.at(-1);
  const taken = takenEdges(path);
  const shapes = [...names].map((name): Shape => {
    const own = steps.filter((step) => step.node === name);
    const here = own.some((step) => step.moment.checkpoint === chosen);
    const last = own.at(-1);
    const look = [ENDS[name] && "end", own.length > 0 && "was", here && "chosen", head?.next.includes(name) && "next"];
    return {
      id: name,
      label: ENDS[name] ?? titleOfNode(name),
      look: look.filter(Boolean).join(" "),
      ...(own.length > 0 && { remark: own.length > 1 ? `${own.length} times` : `step ${own[0]?.number}` }),
      ...(!ENDS[name] && { title: name }),
      ...(last && {
        onChoose: () => onChoose(after(own, chosen)),
      }),
    };
  });
  const arrows = method.graph.edges.map(({ from, to, conditional }): Arrow => {
    const look = [conditional && "may", taken.has(`${from} ${to}`) && "was"].filter(Boolean).join(" ");
    return { id: `${from} ${to}`, from, to, look };
  });
  return { shapes, arrows };
}

/** Choosing a node again selects its next visit. */
function after(own: ReturnType<typeof visits>, chosen: string): string {
  const at = own.findIndex((step) => step.moment.checkpoint === chosen);
  return own[(at + 1) % own.length]?.moment.checkpoint ?? chosen;
}

/** The edges between the nodes of each step and those of the next. */
function takenEdges(path: Moment[]): Set<string> {
  const taken = new Set<string>();
  for (const moment of path) {
    const from = moment.node.length ? moment.node : ["__start__"];
    const next = moment.next.length ? moment.next : ["__end__"];
    for (const a of from) for (const b of next) taken.add(`${a} ${b}`);
  }
  return taken;
}
