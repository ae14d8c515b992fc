// The views, in menu order. Each is loaded on first use.
import type { Component } from 'svelte';

export interface View {
  name: string;
  title: string;
  key: string; // shortcut after g
  icon: string;
  load: () => Promise<{ default: Component }>;
}

export const views: View[] = [
  { name: 'map', title: 'Map', key: 'm', icon: 'M4 4h4v4H4zM12 4h4v4h-4zM4 13h4v3H4zM12 13h4v3h-4zM6 8v5M14 8v5M7 8l6 5M13 8l-6 5', load: () => import('./views/Map.svelte') },
  { name: 'incidents', title: 'Incidents', key: 'i', icon: 'M10 3 2.5 16.5h15zM10 8v4M10 14.2v.3', load: () => import('./views/Incidents.svelte') },
  { name: 'lab', title: 'Lab', key: 'l', icon: 'M8 3h4M8.5 3v5L4 16.5h12L11.500 8V3M6.500 12h7', load: () => import('./views/Lab.svelte') },
  { name: 'flows', title: 'Flows', key: 'f', icon: 'M3 6h11l-3-3M17 14H6l3 3', load: () => import('./views/Flows.svelte') },
  { name: 'jobs', title: 'Jobs', key: 'j', icon: 'M10 3a3 3 0 1 0 .1 0M4.5 12a2.500 2.500 0 1 0 .1 0M15.500 12a2.500 2.500 0 1 0 .1 0M8.500 8.600 5.800 12M11.500 8.600l2.700 3.400M7 14.500h6', load: () => import('./views/Jobs.svelte') },
  { name: 'ports', title: 'Ports', key: 'p', icon: 'M3 3h4v4H3zM8 8h4v4H8zM13 3h4v4h-4zM3 13h4v4H3zM13 13h4v4h-4z', load: () => import('./views/Ports.svelte') },
  { name: 'traces', title: 'Traces', key: 't', icon: 'M4 4h.1M4 10h.1M4 16h.1M8 4h8M8 10h8M8 16h5', load: () => import('./views/Traces.svelte') },
  { name: 'probes', title: 'Probes', key: 'd', icon: 'M10 3a7 7 0 1 0 7 7M10 7a3 3 0 1 0 3 3M10 10l7-7', load: () => import('./views/Probes.svelte') },
  { name: 'counters', title: 'Counters', key: 'c', icon: 'M3 17h14M5 14V9M10 14V4M15 14v-7', load: () => import('./views/Counters.svelte') },
  { name: 'slow-flows', title: 'Slow flows', key: 's', icon: 'M10 3a7 7 0 1 0 .1 0M10 6v4l3 2', load: () => import('./views/SlowFlows.svelte') },
  { name: 'sources', title: 'Sources', key: 'o', icon: 'M4 6h5M4 10h5M4 14h5M9 6l4 4M9 10h7M9 14l4-4', load: () => import('./views/Sources.svelte') },
  { name: 'health', title: 'Health', key: 'h', icon: 'M2 11h4l2-6 4 10 2-4h4', load: () => import('./views/Health.svelte') },
];
