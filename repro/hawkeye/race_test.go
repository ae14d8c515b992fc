//go:build race

package hawkeye

const slow = true // the race detector is on
