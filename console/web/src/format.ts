// Numbers for people: three significant digits, powers of ten, as model/format.go
// writes them.

/** format3 writes a number with three significant digits, without trailing zeros. */
export function format3(v: number): string {
  const a = Math.abs(v);
  const digits = a > 0 && a < 99.95 ? Math.min(9, Math.max(0, 2 - Math.floor(Math.log10(a * 1.0005)))) : 0;
  const text = v.toFixed(digits);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** scaled picks the largest unit in which the rounded value is at least 1: 999.9 µs is "1 ms". */
export function scaled(v: number, units: [string, number][]): string {
  const [name, size] = units.findLast(([, s]) => Math.abs(v) >= 0.9995 * s) ?? units[0]!;
  return (format3(v / size) + ' ' + name).trim();
}

const prefixes: [string, number][] = [['', 1], ['k', 1e3], ['M', 1e6], ['G', 1e9], ['T', 1e12]];
const prefixed = (v: number, unit: string) => scaled(v, prefixes.map(([p, s]) => [p + unit, s]));

export const rate = (bps: number) => prefixed(bps, 'b/s');
export const bytes = (n: number) => prefixed(n, 'B');
export const count = (n: number) => (Math.abs(n) < 10000 ? Math.round(n).toLocaleString('en') : prefixed(n, ''));
export const percent = (share: number) => format3(100 * share) + ' %';
export const perSecond = (n: number) => prefixed(n, '') + '/s';
export const plural = (n: number, one: string, many = one + 's') => `${count(n)} ${n === 1 ? one : many}`;
