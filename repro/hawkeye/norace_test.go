//go:build !race

package hawkeye

const slow = false
