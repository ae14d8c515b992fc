// Fabric time in nanoseconds, as bigint: a hop takes less than the millisecond of
// JavaScript's Date.
import { format3, scaled } from './format';

export function parseTime(text: string): bigint {
  const m = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(text);
  if (!m) return 0n;
  return BigInt(Date.parse(m[1]! + m[3]!)) * 1_000_000n + BigInt((m[2] ?? '').padEnd(9, '0').slice(0, 9));
}

export function formatTime(t: bigint): string {
  const ms = t / 1_000_000n;
  const rest = t - (ms / 1000n) * 1_000_000_000n;
  return new Date(Number(ms)).toISOString().slice(0, 19) + '.' + rest.toString().padStart(9, '0') + 'Z';
}

/** clockText returns the time of day, without the date. */
export function clockText(t: bigint | string, digits = 3): string {
  const text = typeof t === 'string' ? formatTime(parseTime(t)) : formatTime(t);
  return text.slice(11, 19) + (digits ? text.slice(19, 20 + digits) : '');
}

/** duration writes nanoseconds with three significant digits, as "76.9 µs". */
export function duration(ns: number | bigint): string {
  const n = Number(ns);
  const a = Math.abs(n);
  if (a >= 99.95 * 60e9) return format3(n / 3600e9) + ' h';
  if (a >= 99.95e9) return format3(n / 60e9) + ' min';
  return scaled(n, [['ns', 1], ['µs', 1e3], ['ms', 1e6], ['s', 1e9]]);
}

/** ranges are the lengths of time ranges that a user can select, as the API parses them. */
export const ranges = ['20ms', '50ms', '100ms', '200ms', '500ms', '1s', '5s', '30s', '1m', '5m', '15m', '1h'] as const;

export function rangeNs(text: string): number {
  const m = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text);
  if (!m) return 1e9;
  return Number(m[1]) * { ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 }[m[2] as 'ms' | 's' | 'm' | 'h'];
}

/** rangeFor returns the range that covers some wall-clock seconds at a pace. */
export function rangeFor(wallSeconds: number, pace: number): string {
  const want = wallSeconds * 1e9 * (pace || 1);
  return ranges.find((s) => rangeNs(s) >= want) ?? '1h';
}
