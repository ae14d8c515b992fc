import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// The page is embedded in the binary and committed, so the same source must
// give the same bytes: names hold hashes of contents, nothing holds a date.
export default defineConfig({
  plugins: [svelte()],
  base: './',
  build: { outDir: '../dist', emptyOutDir: true, target: 'es2022', modulePreload: { polyfill: false }, assetsInlineLimit: 0 },
  server: { proxy: { '/api': 'http://127.0.0.1:8080', '/version': 'http://127.0.0.1:8080' } },
});
