//go:build race

package console_test

// raced tells that the detector is on, which makes a simulated fabric too slow
// to wait for in a browser.
const raced = true
