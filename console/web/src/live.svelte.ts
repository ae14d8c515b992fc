// The connection to the controller and the state received so far.
import { get, Problem, token } from './api/client';
import type { Clock, Fault, Health, Incident, Mark, NodeState, PortState, Probe, Topology } from './api/client';
import { listen, type Message } from './api/events';
import { Frames, Ports } from './map/port_states';
import { parseTime, rangeFor } from './time';

/** paintLimit is the number of ports up to which the first states come from memory: those of more are longer than a compressed state event. */
const paintLimit = 8000;

interface StateEvent {
  full: boolean;
  time: string;
  nodes: NodeState[];
  ports: PortState[];
}

class Live {
  topology = $state.raw<Topology>();
  frames = $state.raw<Frames>();
  clock = $state.raw<Clock>();
  health = $state.raw<Health>();
  incidents = $state.raw<Incident[]>([]); // newest first
  faults = $state.raw<Fault[]>([]); // newest first
  probes = $state.raw<Probe[]>([]);
  marks = $state.raw<Mark[]>([]);
  lab = $state(false); // the fabric is simulated, so faults can be injected
  probing = $state(false); // the controller can send probes
  link = $state<'connecting' | 'live' | 'lost'>('connecting');
  linkError = $state(''); // why the link is not live
  needsToken = $state(false);
  tokenRejected = $state(false); // the last token was not accepted
  tenant = $state(false); // the token is a tenant's, who sees only slow flows
  ticks = $state(0); // states received; what shows port values depends on it
  private clockAt = 0;
  private streamed = false; // a state event has arrived
  private waiting: Message[] | undefined; // events received during reload

  /** now returns the fabric's time, extrapolated from the last clock event. */
  now(): bigint {
    if (!this.clock) return 0n;
    const since = (performance.now() - this.clockAt) * (this.clock.pace || 0);
    return parseTime(this.clock.now) + BigInt(Math.round(Math.min(since, 2000) * 1e6));
  }

  /** defaultRange returns the range that covers the last wall-clock seconds at the current pace. */
  defaultRange(seconds = 60): string {
    const c = this.clock;
    return rangeFor(seconds, c ? (c.target_pace > 0 ? Math.min(c.pace || c.target_pace, c.target_pace) : 1) : 1);
  }

  async start(): Promise<void> {
    try {
      this.setTopology(await get('/topology'));
    } catch (e) {
      if (e instanceof Problem && e.status === 401) {
        this.needsToken = true;
        this.tokenRejected = token.get() !== '';
      }
      this.tenant = e instanceof Problem && e.status === 403;
      if (this.tenant) return;
      this.link = 'lost';
      this.linkError = e instanceof Problem ? e.detail : String(e);
      if (!this.needsToken) setTimeout(() => void this.start(), 2000);
      return;
    }
    void this.paint();
    void listen(new AbortController().signal, (m) => this.handleEvent(m), (s, why) => [this.link, this.linkError] = [s === 'live' && !this.health ? 'connecting' : s, why]);
  }

  async signIn(t: string): Promise<void> {
    token.set(t);
    this.needsToken = false;
    await this.start();
  }

  private setTopology(t: Topology): void {
    this.topology = t;
    this.frames = new Frames(new Ports(t));
  }

  /** paint shows the states that switches wrote last, until the first state event arrives. A controller may not have them. */
  private async paint(): Promise<void> {
    const frames = this.frames!;
    if (frames.ports.list.length > paintLimit) return;
    try {
      const now = await get('/ports/now');
      if (this.streamed || frames !== this.frames) return;
      const ports = now.ports.map(({ node, port = 0, load_bps, load_share, queue_bytes, paused_share, age_ms }) => ({ node, port, load_bps, load_share, queue_bytes, paused_share, age_ms }));
      frames.apply({ time: now.time, nodes: [], ports });
      this.ticks++;
    } catch (e) {
      if (!(e instanceof Problem)) throw e;
    }
  }

  /** reload reads all lists, of which events only report changes. Events are queued meanwhile. */
  private async reload(): Promise<void> {
    const list = async <T>(p: Promise<{ items: T[] }>, there: () => void = () => {}): Promise<T[]> => {
      try {
        const page = await p;
        there();
        return page.items;
      } catch (e) {
        if (e instanceof Problem && (e.status === 404 || e.status === 501)) return []; // the controller does not support it
        throw e;
      }
    };
    const mine = (this.waiting = []);
    try {
      const clock = await get('/clock');
      const all = await Promise.all([
        clock, get('/health'),
        list(get('/incidents', { query: { limit: 200 } })),
        clock.mode === 'serve' ? [] : list(get('/faults'), () => (this.lab = true)), // a service has no lab
        list(get('/probes'), () => (this.probing = true)),
        list(get('/marks')),
      ]);
      if (mine !== this.waiting) return; // another reload has started
      [this.clock, this.health, this.incidents, this.faults, this.probes, this.marks] = all;
    } catch (e) {
      if (mine !== this.waiting) return;
      this.linkError = e instanceof Problem ? e.detail : String(e);
      setTimeout(() => { if (mine === this.waiting) void this.reload(); }, 1000);
      return;
    }
    this.clockAt = performance.now();
    this.waiting = undefined;
    for (const m of mine) this.handleEvent(m);
    [this.link, this.linkError] = ['live', ''];
  }

  private handleEvent(m: Message): void {
    if (m.name === 'state') {
      const s = m.data as StateEvent;
      this.streamed = true;
      this.frames?.apply(s, s.full ? undefined : performance.now());
      this.ticks++;
      if (s.full) void this.reload(); // events before it were missed
      return;
    }
    if (this.waiting) {
      this.waiting.push(m);
      return;
    }
    switch (m.name) {
      case 'clock':
        this.clock = m.data as Clock;
        this.clockAt = performance.now();
        return;
      case 'health':
        this.health = m.data as Health;
        return;
      case 'incident':
        this.incidents = merged(this.incidents, m.data as Incident).sort((a, b) => (a.begin < b.begin ? 1 : -1));
        return;
      case 'fault':
        this.faults = merged(this.faults, m.data as Fault);
        return;
      case 'probe':
        this.probes = merged(this.probes, m.data as Probe);
        return;
      case 'mark':
        this.marks = merged(this.marks, m.data as Mark);
    }
  }
}

/** merged replaces an item with the same id, or inserts a new one at the front. */
export function merged<T extends { id: string }>(list: T[], x: T): T[] {
  const i = list.findIndex((y) => y.id === x.id);
  return i < 0 ? [x, ...list] : list.with(i, x);
}

export const live = new Live();
