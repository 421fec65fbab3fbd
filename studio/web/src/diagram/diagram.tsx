/** A graph drawn by React Flow, with selectable boxes. */

import {
  BaseEdge,
  Controls,
  EdgeLabelRenderer,
  Handle,
  MarkerType,
  Position,
  ReactFlow,
  type Edge,
  type EdgeProps,
  type Node,
  type NodeHandle,
  type NodeProps,
  type ReactFlowInstance,
} from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { useEffect, useMemo, useRef, useState } from "react";
import { useWide } from "../wide";
import { curve, place, type Box, type Line, type Point } from "./layout";

export interface Shape extends Box {
  /** Classes such as `was` or `chosen`. */
  look: string;
  /** A small label, such as the step that visited the node. */
  remark?: string;
  /** Shown while the pointer is on the box. */
  title?: string;
  onChoose?: () => void;
}

export interface Arrow extends Line {
  look: string;
}

interface Props {
  label: string;
  shapes: Shape[];
  arrows: Arrow[];
  direction?: "LR" | "TB";
}

type BoxNode = Node<{ shape: Shape }>;
type LineEdge = Edge<{ points: Point[]; at: Point | null }>;

/** The graph; on a narrow screen, where it would not be legible, its arrows as lines of text. */
export function Diagram(props: Props) {
  const { label, shapes, arrows } = props;
  const nameOf = (id: string) => shapes.find((shape) => shape.id === id)?.label ?? id;
  if (useWide()) return <Drawn {...props} />;
  return (
    <ul aria-label={label}>
      {arrows.map((arrow) => (
        <li key={arrow.id}>
          {nameOf(arrow.from)} <span className="quiet">{arrow.label ?? "→"}</span> {nameOf(arrow.to)}
        </li>
      ))}
    </ul>
  );
}

function Drawn({ label, shapes, arrows, direction = "LR" }: Props) {
  const { nodes, edges, shape } = useMemo(() => drawn(shapes, arrows, direction), [shapes, arrows, direction]);
  const frame = useRef<HTMLDivElement>(null);
  const [flow, setFlow] = useState<ReactFlowInstance<BoxNode, LineEdge> | null>(null);
  useEffect(() => {
    if (!frame.current || !flow) return;
    const resized = new ResizeObserver(() => void flow.fitView(FIT));
    resized.observe(frame.current);
    return () => {
      resized.disconnect();
    };
  }, [flow]);
  return (
    <div ref={frame} className="diagram" style={{ aspectRatio: shape }} role="group" aria-label={label}>
      <ReactFlow
        key={shapes.map((shape) => shape.id).join()}
        nodes={nodes}
        edges={edges}
        nodeTypes={NODES}
        edgeTypes={EDGES}
        fitView
        fitViewOptions={FIT}
        onInit={setFlow}
        minZoom={0.15}
        colorMode="system"
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        zoomOnScroll={false}
        preventScrolling={false}
      >
        <Controls orientation="horizontal" showInteractive={false} />
      </ReactFlow>
    </div>
  );
}

const FIT = { padding: 0.02, maxZoom: 1.15 };

/** Space for the buttons above and below a flat graph. */
const ROOM = 60;

function drawn(shapes: Shape[], arrows: Arrow[], direction: "LR" | "TB") {
  const placed = place(shapes, arrows, direction);
  const nodes = shapes.flatMap((shape): BoxNode[] => {
    const at = placed.nodes.get(shape.id);
    if (!at) return [];
    const { x, y, width, height } = at;
    // With a given size a box is drawn immediately, and its lines do not flicker when the state changes.
    const known = { width, height, measured: { width, height }, handles: handlesOf(width, height) };
    return [{ id: shape.id, type: "box", position: { x, y }, ...known, data: { shape } }];
  });
  const edges = arrows.map((arrow): LineEdge => {
    const way = placed.edges.get(arrow.id);
    return {
      id: arrow.id,
      source: arrow.from,
      target: arrow.to,
      type: "line",
      className: arrow.look,
      data: { points: way?.points ?? [], at: way?.label ?? null },
      ...(arrow.label && { label: arrow.label }),
      markerEnd: {
        type: MarkerType.ArrowClosed,
        width: 12,
        height: 12,
        color: arrow.look.includes("was") ? "var(--accent)" : "var(--edge)",
      },
    };
  });
  return { nodes, edges, shape: `${placed.width} / ${placed.height + ROOM}` };
}

function handlesOf(width: number, height: number): NodeHandle[] {
  const y = height / 2;
  return [
    { type: "target", position: Position.Left, x: 0, y, width: 1, height: 1 },
    { type: "source", position: Position.Right, x: width, y, width: 1, height: 1 },
  ];
}

function BoxView({ data: { shape } }: NodeProps<BoxNode>) {
  const words = (
    <>
      <span>{shape.label}</span>
      {shape.remark && <small>{shape.remark}</small>}
    </>
  );
  return (
    <>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      {shape.onChoose ? (
        <button className={`shape nodrag nopan ${shape.look}`} title={shape.title} onClick={shape.onChoose}>
          {words}
        </button>
      ) : (
        <div className={`shape ${shape.look}`} title={shape.title}>
          {words}
        </div>
      )}
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </>
  );
}

function LineView({ data, markerEnd, label }: EdgeProps<LineEdge>) {
  if (!data) return null;
  return (
    <>
      <BaseEdge path={curve(data.points)} {...(markerEnd && { markerEnd })} />
      {label && data.at && (
        <EdgeLabelRenderer>
          <span
            className="edge-label"
            style={{ transform: `translate(-50%, -50%) translate(${data.at.x}px, ${data.at.y}px)` }}
          >
            {label}
          </span>
        </EdgeLabelRenderer>
      )}
    </>
  );
}

const NODES = { box: BoxView };
const EDGES = { line: LineView };
