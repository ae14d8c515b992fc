// Ports and nodes of the map that an incident or a path highlights.
import type { IncidentDetail, PortRef } from '../api/client';
import type { Highlight } from './scene';
import { nodeOf, type Ports } from './port_states';

export function incidentHighlight(ports: Ports, d: IncidentDetail): Highlight {
  const index = (list: PortRef[]) => list.flatMap((r) => ports.ofRef(r)?.index ?? []);
  return {
    nodes: new Set(d.nodes.length <= 8 ? d.nodes : [nodeOf(d.location)]),
    links: new Set(index([...d.links, ...(d.origin ? [d.origin] : [])])),
    path: index(d.pfc_path),
    cycle: index(d.loop),
  };
}

/** pathHighlight highlights the links between successive nodes. */
export function pathHighlight(ports: Ports, nodes: readonly string[]): Highlight {
  const path = nodes.slice(1).flatMap((to, i) => ports.list.find((p) => p.node === nodes[i] && p.peer === to)?.index ?? []);
  return { nodes: new Set(nodes), links: new Set(), path, cycle: [] };
}
