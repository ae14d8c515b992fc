// What an incident or a path points at, as ports and nodes of the map.
import type { IncidentDetail, PortRef } from '../api/client';
import type { Highlight } from './draw';
import type { Ports } from './frames';

export function highlightOf(ports: Ports, d: IncidentDetail): Highlight {
  const index = (list: PortRef[]) => list.flatMap((r) => ports.find(r.node, r.port)?.index ?? []);
  return {
    nodes: new Set(d.nodes.length <= 8 ? d.nodes : [d.place.split(':')[0]!]),
    links: new Set(index([...d.links, ...(d.origin ? [d.origin] : [])])),
    path: index(d.pfc_path),
    loop: index(d.loop),
  };
}

/** wayOf are the ports along nodes that follow each other. */
export function wayOf(ports: Ports, nodes: readonly string[]): Highlight {
  const path = nodes.slice(1).flatMap((to, i) => ports.list.find((p) => p.node === nodes[i] && p.peer === to)?.index ?? []);
  return { nodes: new Set(nodes), links: new Set(), path, loop: [] };
}
