// The state of the console is in the URL fragment: #/flows/KEY?last=1s. Flow keys
// contain dots and slashes, which the server would take for a file path.

export interface Route {
  view: string;
  id: string;
  params: Record<string, string>;
}

function read(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [view, ...rest] = path.split('/');
  return { view: view || 'map', id: rest.map(decodeURIComponent).join('/'), params: Object.fromEntries(new URLSearchParams(query)) };
}

export const route: Route = $state(read());

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

/** setParams changes parameters of the route without a new history entry. */
export function setParams(params: Record<string, string | undefined>): void {
  const next = href(route.view, route.id, { ...route.params, ...params });
  if (next === location.hash) return;
  history.replaceState(null, '', next);
  Object.assign(route, read());
}
