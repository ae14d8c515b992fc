// Light or dark: as the system says, until somebody says otherwise.
import type { Theme } from './map/draw';

const key = 'weft-theme';
const wanted = matchMedia('(prefers-color-scheme: dark)');

class Look {
  dark = $state(localStorage.getItem(key) ? localStorage.getItem(key) === 'dark' : wanted.matches);

  constructor() {
    this.show();
    wanted.addEventListener('change', (e) => {
      if (localStorage.getItem(key)) return;
      this.dark = e.matches;
      this.show();
    });
  }

  toggle(): void {
    this.dark = !this.dark;
    localStorage.setItem(key, this.dark ? 'dark' : 'light');
    this.show();
  }

  private show(): void {
    document.documentElement.dataset.theme = this.dark ? 'dark' : 'light';
  }

  /** colours are the variables, for canvases. */
  colours(): Theme {
    const dark = this.dark; // read first: whoever asks depends on it
    const s = getComputedStyle(document.documentElement);
    const v = (name: string) => s.getPropertyValue('--' + name).trim();
    return {
      panel: v('panel'), raised: v('raised'), line: v('line-strong'), text: v('text'), dim: v('dim'), accent: v('accent'),
      critical: v('critical'), warning: v('warning'), path: v('path'), loop: v('loop'), dark,
    };
  }
}

export const look = new Look();
