// The fabric's time, in nanoseconds: a hop takes less than JavaScript's
// millisecond, so instants are bigints.

export function parseTime(text: string): bigint {
  const m = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(text);
  if (!m) return 0n;
  return BigInt(Date.parse(m[1]! + m[3]!)) * 1_000_000n + BigInt((m[2] ?? '').padEnd(9, '0').slice(0, 9));
}

export function stamp(t: bigint): string {
  const ms = t / 1_000_000n;
  const rest = t - (ms / 1000n) * 1_000_000_000n;
  return new Date(Number(ms)).toISOString().slice(0, 19) + '.' + rest.toString().padStart(9, '0') + 'Z';
}

/** clockText is a time of day: an operator compares instants, rarely days. */
export function clockText(t: bigint | string, digits = 3): string {
  const text = typeof t === 'string' ? stamp(parseTime(t)) : stamp(t);
  return text.slice(11, 19) + (digits ? text.slice(19, 20 + digits) : '');
}

const units: [string, number][] = [['h', 3600e9], ['m', 60e9], ['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]];

/** duration writes nanoseconds with three digits that count. */
export function duration(ns: number | bigint): string {
  const n = Number(ns);
  if (n === 0) return '0';
  const a = Math.abs(n);
  const [unit, size] = units.find(([, s]) => a >= s) ?? ['ns', 1];
  const v = n / size;
  return trim(v) + ' ' + unit;
}

function trim(v: number): string {
  const a = Math.abs(v);
  const text = v.toFixed(a >= 100 ? 0 : a >= 10 ? 1 : 2);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** spans that a range can have, as the API reads them. */
export const spans = ['20ms', '50ms', '100ms', '200ms', '500ms', '1s', '5s', '30s', '1m', '5m', '15m', '1h'] as const;

export function spanNs(text: string): number {
  const m = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text);
  if (!m) return 1e9;
  return Number(m[1]) * { ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 }[m[2] as 'ms' | 's' | 'm' | 'h'];
}

/** spanFor is the span that about so much time of the wall fills at a pace. */
export function spanFor(wallSeconds: number, pace: number): string {
  const want = wallSeconds * 1e9 * (pace || 1);
  return spans.find((s) => spanNs(s) >= want) ?? '1h';
}
