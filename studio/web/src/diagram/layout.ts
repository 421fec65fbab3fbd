/** Layout of a graph: positions of nodes, and edges routed around them. */

import { Graph, layout } from "@dagrejs/dagre";

export interface Box {
  id: string;
  label: string;
}

export interface Line {
  id: string;
  from: string;
  to: string;
  label?: string;
}

export interface Point {
  x: number;
  y: number;
}

export interface Placement {
  width: number;
  height: number;
  nodes: Map<string, Point & { width: number; height: number }>;
  edges: Map<string, { points: Point[]; label: Point | null }>;
}

/** The widest box: boxes beside each other are narrow, so that their letters stay large when the graph is fitted. */
const WIDEST = { LR: 92, TB: 190 };
const LETTER = 8;
const LINE = 18;

/** The size of a box for its label. */
export function sizeOf(label: string, direction: "LR" | "TB"): { width: number; height: number } {
  const widest = WIDEST[direction];
  const letters = label.length * LETTER;
  const lines = Math.max(1, Math.ceil(letters / (widest - 20)));
  return { width: lines > 1 ? widest : Math.max(60, letters + 18), height: 24 + lines * LINE };
}

export function place(boxes: readonly Box[], lines: readonly Line[], direction: "LR" | "TB"): Placement {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: direction, nodesep: 20, ranksep: 16, edgesep: 12, marginx: 8, marginy: 8 });
  for (const box of boxes) graph.setNode(box.id, sizeOf(box.label, direction));
  for (const line of lines) {
    const label = line.label ? { width: line.label.length * 6, height: 14, labelpos: "c" } : {};
    graph.setEdge(line.from, line.to, label, line.id);
  }
  layout(graph);
  const { width = 1, height = 1 } = graph.graph() as { width?: number; height?: number };
  return {
    width,
    height,
    nodes: new Map(boxes.map(({ id }) => [id, corner(graph.node(id) as Sized)])),
    edges: new Map(lines.map((line) => [line.id, way(graph.edge(line.from, line.to, line.id) as Way)])),
  };
}

interface Sized extends Point {
  width: number;
  height: number;
}

interface Way {
  points: Point[];
  x?: number;
  y?: number;
}

/** dagre uses the centers of boxes, React Flow their upper left corners. */
function corner({ x, y, width, height }: Sized) {
  return { x: x - width / 2, y: y - height / 2, width, height };
}

function way({ points, x, y }: Way) {
  return { points, label: x === undefined || y === undefined ? null : { x, y } };
}

/** A smooth line through these points, as SVG. */
export function curve(points: readonly Point[]): string {
  const [first, ...rest] = points;
  const last = rest.pop();
  if (!first || !last) return "";
  const bends = rest.map((point, at) => {
    const next = rest[at + 1];
    const to = next ? { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 } : last;
    return `Q ${point.x} ${point.y} ${to.x} ${to.y}`;
  });
  return `M ${first.x} ${first.y} ${bends.length ? bends.join(" ") : `L ${last.x} ${last.y}`}`;
}
