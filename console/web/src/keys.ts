// Keys that work everywhere: / ? and g with a letter.
import { go } from './router.svelte';
import { views } from './views';

export function keys(on: { search: () => void; help: () => void }): (e: KeyboardEvent) => void {
  let after = ''; // the key before
  return (e) => {
    const t = e.target as HTMLElement;
    // Until its next frame, the browser leaves the focus in a dialog that was closed.
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

/** rows lets arrows walk through the rows of a list, and Enter open one. */
export function rows(list: HTMLElement): { destroy: () => void } {
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
