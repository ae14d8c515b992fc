// The views, in the order of the menu. Each is loaded when it is first seen.
import type { Component } from 'svelte';

export interface View {
  name: string;
  title: string;
  key: string; // after g
  icon: string;
  load: () => Promise<{ default: Component }>;
}

export const views: View[] = [
  { name: 'map', title: 'Map', key: 'm', icon: 'M4 4h4v4H4zM12 4h4v4h-4zM4 13h4v3H4zM12 13h4v3h-4zM6 8v5M14 8v5M7 8l6 5M13 8l-6 5', load: () => import('./views/Map.svelte') },
  { name: 'incidents', title: 'Incidents', key: 'i', icon: 'M10 3 2.5 16.5h15zM10 8v4M10 14.2v.3', load: () => import('./views/Incidents.svelte') },
  { name: 'health', title: 'Health', key: 'h', icon: 'M2 11h4l2-6 4 10 2-4h4', load: () => import('./views/Health.svelte') },
];
