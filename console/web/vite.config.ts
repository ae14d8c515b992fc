import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// The build is embedded in the binary and committed, so equal sources must give
// equal bytes: file names contain hashes of the content, no file contains a date. Styles
// are one file: a style sheet that did not load with its view would not be asked for again.
export default defineConfig({
  plugins: [svelte()],
  base: './',
  build: { outDir: '../dist', emptyOutDir: true, target: 'es2022', cssCodeSplit: false, modulePreload: { polyfill: false }, assetsInlineLimit: 0 },
  server: { proxy: { '/api': 'http://127.0.0.1:8080', '/version': 'http://127.0.0.1:8080' } },
});
