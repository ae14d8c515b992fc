// Light or dark theme: the system preference, until the user toggles it.
import type { Palette } from './map/pen';

const key = 'weft-theme';
const systemDark = matchMedia('(prefers-color-scheme: dark)');

class AppTheme {
  dark = $state(localStorage.getItem(key) ? localStorage.getItem(key) === 'dark' : systemDark.matches);

  constructor() {
    this.applyTheme();
    systemDark.addEventListener('change', (e) => {
      if (localStorage.getItem(key)) return;
      this.dark = e.matches;
      this.applyTheme();
    });
  }

  toggle(): void {
    this.dark = !this.dark;
    localStorage.setItem(key, this.dark ? 'dark' : 'light');
    this.applyTheme();
  }

  private applyTheme(): void {
    document.documentElement.dataset.theme = this.dark ? 'dark' : 'light';
  }

  /** colours returns the CSS variables, for canvases. */
  colours(): Palette {
    const dark = this.dark; // read first, so that callers depend on it
    const s = getComputedStyle(document.documentElement);
    const v = (name: string) => s.getPropertyValue('--' + name).trim();
    return {
      panel: v('panel'), raised: v('raised'), line: v('line-strong'), text: v('text'), dim: v('dim'), accent: v('accent'),
      critical: v('critical'), warning: v('warning'), path: v('path'), cycle: v('cycle'), dark,
    };
  }
}

export const appTheme = new AppTheme();
