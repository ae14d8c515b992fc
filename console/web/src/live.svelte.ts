// The one connection to the controller and what it has told so far.
import { get, Problem, token } from './api/client';
import type { Clock, Fault, Health, Incident, Mark, NodeState, PortState, Probe, Topology } from './api/client';
import { listen, type Message } from './api/events';
import { Frames, Ports } from './map/frames';
import { parseTime, spanFor } from './time';

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
  lab = $state(false); // the fabric is simulated and can be broken
  probing = $state(false); // the controller can send probes
  link = $state<'connecting' | 'live' | 'lost'>('connecting');
  why = $state(''); // the link is not live
  locked = $state(false); // a token is wanted
  tenant = $state(false); // the token is a tenant's: only slow flows are for it
  ticks = $state(0); // states heard; what shows ports' numbers depends on it
  private clockAt = 0;
  private waiting: Message[] | undefined; // events heard while reload asks

  /** now is the fabric's time, going on between two clocks heard. */
  now(): bigint {
    if (!this.clock) return 0n;
    const since = (performance.now() - this.clockAt) * (this.clock.pace || 0);
    return parseTime(this.clock.now) + BigInt(Math.round(Math.min(since, 2000) * 1e6));
  }

  /** span is a range that fits the pace: so much time of watching. */
  span(seconds = 60): string {
    const c = this.clock;
    return spanFor(seconds, c ? (c.wanted_pace > 0 ? Math.min(c.pace || c.wanted_pace, c.wanted_pace) : 1) : 1);
  }

  async start(): Promise<void> {
    try {
      this.take(await get('/topology'));
    } catch (e) {
      if (e instanceof Problem && e.status === 401) this.locked = true;
      this.tenant = e instanceof Problem && e.status === 403;
      if (this.tenant) return;
      this.link = 'lost';
      this.why = e instanceof Problem ? e.detail : String(e);
      if (!this.locked) setTimeout(() => void this.start(), 2000);
      return;
    }
    void listen(new AbortController().signal, (m) => this.hear(m), (s, why) => [this.link, this.why] = [s === 'live' && !this.health ? 'connecting' : s, why]);
  }

  async unlock(t: string): Promise<void> {
    token.set(t);
    this.locked = false;
    await this.start();
  }

  private take(t: Topology): void {
    this.topology = t;
    this.frames = new Frames(new Ports(t));
  }

  /** reload asks for all that events only tell the changes of; events wait meanwhile, and come after. */
  private async reload(): Promise<void> {
    const list = async <T>(p: Promise<{ items: T[] }>, there: () => void = () => {}): Promise<T[]> => {
      try {
        const page = await p;
        there();
        return page.items;
      } catch (e) {
        if (e instanceof Problem && (e.status === 404 || e.status === 501)) return []; // the controller has no such part
        throw e;
      }
    };
    const mine = (this.waiting = []);
    try {
      const all = await Promise.all([
        get('/clock'), get('/health'),
        list(get('/incidents', { query: { limit: 200 } })),
        list(get('/faults'), () => (this.lab = true)),
        list(get('/probes'), () => (this.probing = true)),
        list(get('/marks')),
      ]);
      if (mine !== this.waiting) return; // asked anew since
      [this.clock, this.health, this.incidents, this.faults, this.probes, this.marks] = all;
    } catch (e) {
      if (mine !== this.waiting) return;
      this.why = e instanceof Problem ? e.detail : String(e);
      setTimeout(() => { if (mine === this.waiting) void this.reload(); }, 1000);
      return;
    }
    this.clockAt = performance.now();
    this.waiting = undefined;
    for (const m of mine) this.hear(m);
    [this.link, this.why] = ['live', ''];
  }

  private hear(m: Message): void {
    if (m.name === 'state') {
      const s = m.data as StateEvent;
      this.frames?.apply(s, s.full ? undefined : performance.now());
      this.ticks++;
      if (s.full) void this.reload(); // what happened before it was told to others
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

/** merged puts something new first, and something known in its place. */
export function merged<T extends { id: string }>(list: T[], x: T): T[] {
  const i = list.findIndex((y) => y.id === x.id);
  return i < 0 ? [x, ...list] : list.with(i, x);
}

export const live = new Live();
