// Numbers as operators write them: rates in bits per second, buffers in bytes,
// both in powers of ten.

function scaled(v: number, unit: string): string {
  const a = Math.abs(v);
  for (const [p, s] of [['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3]] as const) {
    if (a >= s) return digits(v / s) + ' ' + p + unit;
  }
  return digits(v) + (unit ? ' ' + unit : '');
}

function digits(v: number): string {
  const a = Math.abs(v);
  const text = v.toFixed(a >= 100 || Number.isInteger(v) ? 0 : a >= 10 ? 1 : 2);
  return text;
}

export const rate = (bps: number) => scaled(bps, 'b/s');
export const bytes = (n: number) => scaled(n, 'B');
export const count = (n: number) => (Math.abs(n) < 10000 ? Math.round(n).toLocaleString('en') : scaled(n, ''));
export const percent = (share: number) => (share > 0 && share < 0.001 ? '<0.1%' : (share * 100).toFixed(share < 0.1 ? 1 : 0) + '%');
export const perSecond = (n: number) => (n >= 1000 ? scaled(n, '') : digits(n)) + '/s';
export const plural = (n: number, one: string, many = one + 's') => `${count(n)} ${n === 1 ? one : many}`;
