// All of the page's state that is worth a link stands in the address, behind
// the hash: #/flows/KEY?last=1s. Keys hold dots and slashes, which a path of the
// server's would take for a file.

export interface Place {
  view: string;
  id: string;
  params: Record<string, string>;
}

function read(): Place {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [view, ...rest] = path.split('/');
  return { view: view || 'map', id: rest.map(decodeURIComponent).join('/'), params: Object.fromEntries(new URLSearchParams(query)) };
}

export const route: Place = $state(read());

addEventListener('hashchange', () => Object.assign(route, read()));

export function href(view: string, id = '', params: Record<string, string | undefined> = {}): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v) q.set(k, v);
  const text = q.toString();
  return '#/' + view + (id ? '/' + encodeURIComponent(id) : '') + (text ? '?' + text : '');
}

export function go(view: string, id = '', params: Record<string, string | undefined> = {}): void {
  location.hash = href(view, id, params);
}

/** set changes parameters of this place without a step of history. */
export function set(params: Record<string, string | undefined>): void {
  const next = href(route.view, route.id, { ...route.params, ...params });
  if (next === location.hash) return;
  history.replaceState(null, '', next);
  Object.assign(route, read());
}
