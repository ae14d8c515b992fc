// A fat-tree of any size as in the API, with states to draw.

export function fatTree(k) {
  const nodes = new Map();
  const links = [];
  const half = k / 2;
  const add = (name, role, tier, pod) => nodes.set(name, { name, role, tier, ...(pod === undefined ? {} : { pod }), ipv4: '10.0.0.1', ipv6: 'fd00::1', ports: [] });
  const join = (a, b) => {
    const [x, y] = [nodes.get(a), nodes.get(b)];
    const [p, q] = [x.ports.length + 1, y.ports.length + 1];
    x.ports.push({ port: p, interface: `Ethernet${4 * (p - 1)}`, peer: b, peer_port: q, rate_bps: 1e11 });
    y.ports.push({ port: q, interface: `Ethernet${4 * (q - 1)}`, peer: a, peer_port: p, rate_bps: 1e11 });
    links.push({ a: { node: a, port: p }, b: { node: b, port: q }, rate_bps: 1e11, delay_ns: 1000 });
  };
  for (let s = 0; s < half * half; s++) add(`spine${s}`, 'spine', 3);
  for (let pod = 0; pod < k; pod++) {
    for (let i = 0; i < half; i++) add(`leaf${pod * half + i}`, 'leaf', 2, pod);
    for (let i = 0; i < half; i++) {
      const tor = `tor${pod * half + i}`;
      add(tor, 'tor', 1, pod);
      for (let h = 0; h < half; h++) {
        const host = `h${(pod * half + i) * half + h}`;
        add(host, 'host', 0, pod);
        join(host, tor);
      }
      for (let j = 0; j < half; j++) join(tor, `leaf${pod * half + j}`);
    }
    for (let i = 0; i < half; i++) for (let j = 0; j < half; j++) join(`leaf${pod * half + i}`, `spine${i * half + j}`);
  }
  return { name: `fat-tree-${k}`, nodes: [...nodes.values()], links };
}

/** states returns an event stream with one full state: load everywhere, some queues, pauses and losses. */
export function states(topology) {
  let seed = 7;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const ports = topology.nodes.filter((n) => n.role !== 'host').flatMap((n) => n.ports.map((p) => {
    const load = random() ** 3;
    return {
      node: n.name, port: p.port, load_bps: Math.round(load * 1e11), load_share: load, queue_bytes: random() < 0.05 ? Math.round(random() * 2e6) : 0,
      latency_ns: 800, paused_share: random() < 0.02 ? random() : 0, lost_packets: random() < 0.01 ? 3 : 0, age_ms: 1,
    };
  }));
  const nodes = topology.nodes.map((n) => ({ name: n.name, health: 'ok' }));
  return `event: state\ndata: ${JSON.stringify({ full: true, time: '2026-01-01T00:00:00Z', nodes, ports })}\n\n`;
}
