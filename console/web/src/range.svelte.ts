// The time range of the whole console. It is part of the URL, and links carry it:
// "last" is live and moves on, "from" and "to" are frozen. "at" is the instant of a
// frozen range whose state is shown; default: its end.
import { live } from './live.svelte';
import { route, setParams } from './router.svelte';
import { formatTime, parseTime, rangeNs } from './time';

class TimeRange {
  /** frozen is the range and the instant of the URL, undefined while it is live. */
  readonly frozen = $derived.by((): { from: bigint; to: bigint; at: bigint } | undefined => {
    const { from, to, at } = route.params;
    const [a, b, c] = [from, to, at].map((x) => (x ? parseTime(x) : 0n)) as [bigint, bigint, bigint];
    if (a && b && a < b) return { from: a, to: b, at: c >= a && c <= b ? c : b };
    if (!c) return undefined;
    const half = BigInt(Math.round(rangeNs(this.last) / 2));
    return { from: c - half, to: c + half, at: c };
  });

  get last(): string {
    return route.params.last ?? live.defaultRange();
  }

  /** at is the instant whose state is shown, for the API; empty while it is live. */
  readonly at = $derived(this.frozen ? formatTime(this.frozen.at) : '');

  /** query is the range, for the API. */
  readonly query = $derived.by((): { from: string; to: string } | { last: string } => {
    const f = this.frozen;
    return f ? { from: formatTime(f.from), to: formatTime(f.to) } : { last: this.last };
  });

  /** text names the range in a sentence. */
  readonly text = $derived(this.frozen ? 'this range' : `the last ${this.last}`);

  /** every returns the interval of a query that follows live data: none of a frozen range. */
  every(ms: number): number {
    return this.frozen ? 0 : ms;
  }

  /** span returns the range, as of now while it is live. */
  span(): { from: bigint; to: bigint } {
    if (this.frozen) return this.frozen;
    const to = live.now();
    return { from: to - BigInt(Math.round(rangeNs(this.last))), to };
  }

  freeze(from: bigint, to: bigint, at?: bigint): void {
    if (from < to) setParams({ last: undefined, from: formatTime(from), to: formatTime(to), at: at === undefined ? undefined : formatTime(at) });
  }

  goLive(last = this.frozen ? live.defaultRange() : this.last): void {
    setParams({ last, from: undefined, to: undefined, at: undefined });
  }

  /** useOwn freezes the range at the time that a view is about, unless the URL has one. */
  useOwn(from: bigint, to: bigint, at: bigint): void {
    const { params } = route;
    if (!params.last && !params.from && !params.at) this.freeze(from, to, at);
  }
}

export const range = new TimeRange();
