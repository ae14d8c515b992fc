// Which pods of a fabric are collapsed, and whether links are drawn as bundles: time to
// draw depends on the number of elements, so pods are expanded only up to a limit.
import type { Topology } from '../api/client';
import { sameNeighbours } from './layout';

/** foldFrom is the number of elements from which pods are collapsed at first. */
const foldFrom = 1000;
/** bundleFrom is the number of elements of a fabric of collapsed pods from which its links are bundles. */
const bundleFrom = 4000;
/** drawLimit is the number of elements up to which pods are expanded: 7,488 are a whole fat-tree of k=16. */
const drawLimit = 8000;

/** Folding decides by elements: nodes, and halves of links. */
export class Folding {
  readonly pods: number[];
  readonly bundled: boolean;
  readonly large: boolean; // pods are collapsed at first
  readonly whole: boolean; // all pods may be expanded at once
  private readonly cost = new Map<number, number>(); // of an expanded pod
  private readonly base: number; // with all pods collapsed

  constructor(t: Topology) {
    const podOf = new Map(t.nodes.map((n) => [n.name, n.pod ?? -1]));
    let [all, outside, cells] = [0, 0, 0];
    for (const n of t.nodes) {
      const pod = n.pod ?? -1;
      all += 1 + n.ports.length;
      if (pod < 0) outside += 1 + n.ports.length;
      else {
        this.cost.set(pod, (this.cost.get(pod) ?? 0) + 1 + n.ports.length);
        if (n.tier > 0) cells++;
        for (const p of n.ports) if (podOf.get(p.peer) !== pod) outside++;
      }
    }
    this.pods = [...this.cost.keys()].sort((a, b) => a - b);
    this.bundled = this.pods.length > 1 && outside + cells > bundleFrom;
    this.base = cells + (this.bundled ? this.boxes(t) : outside);
    this.whole = all <= drawLimit;
    this.large = all > foldFrom && this.pods.length > 1;
    this.first = this.large ? [] : this.pods;
  }

  /** boxes returns the elements of the top tier's boxes: cells, and bundles in two halves to every pod. */
  private boxes(t: Topology): number {
    const tops = t.nodes.filter((n) => n.pod === undefined).map((node) => ({ node }));
    return tops.length + 2 * this.pods.length * sameNeighbours(tops).length;
  }

  /** first are the pods that are expanded at first. */
  readonly first: readonly number[];

  /** expand adds pods to the expanded ones, oldest first. Beyond the limit the oldest are collapsed, but never the last one. */
  expand(open: readonly number[], more: readonly number[]): number[] {
    const added = more.filter((id) => this.cost.has(id) && !open.includes(id));
    const next = [...open, ...added];
    if (this.whole) return next;
    let sum = this.base;
    for (const id of next) sum += this.cost.get(id) ?? 0;
    while (sum > drawLimit && next.length > 1) sum -= this.cost.get(next.shift()!) ?? 0;
    return next;
  }
}
