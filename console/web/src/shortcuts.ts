// Global keyboard shortcuts: / and ? and g with a letter; navigation in tables.
import { go } from './router.svelte';
import { views } from './views';

export function shortcuts(on: { search: () => void; help: () => void }): (e: KeyboardEvent) => void {
  let after = ''; // the previous key
  return (e) => {
    const t = e.target as HTMLElement;
    // The browser keeps the focus in a closed dialog until the next frame.
    const dialog = t.closest('dialog');
    const taken = dialog ? dialog.open : t.closest('input:not([type="range"]), textarea, select');
    if (e.ctrlKey || e.metaKey || e.altKey || taken) return;
    const view = after === 'g' && views.find((v) => v.key === e.key);
    after = view ? '' : e.key;
    if (view) go(view.name);
    else if (e.key === '/') on.search();
    else if (e.key === '?') on.help();
    else return;
    e.preventDefault();
  };
}

/** rowNavigation moves the focus between table rows with arrow keys; Enter opens a row. */
export function rowNavigation(list: HTMLElement): { destroy: () => void } {
  const key = (e: KeyboardEvent) => {
    const all = [...list.querySelectorAll<HTMLElement>('tr.link')];
    const i = all.indexOf((e.target as HTMLElement).closest<HTMLElement>('tr.link')!);
    if (e.key === 'ArrowDown') all[Math.min(i + 1, all.length - 1)]?.focus();
    else if (e.key === 'ArrowUp') all[Math.max(i - 1, 0)]?.focus();
    else if (e.key === 'Enter' && i >= 0 && e.target === all[i]) all[i]!.click();
    else return;
    e.preventDefault();
  };
  list.addEventListener('keydown', key);
  return { destroy: () => list.removeEventListener('keydown', key) };
}
