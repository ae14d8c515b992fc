//go:build amd64 || arm64

package sim

// relax makes the core of a loop that waits run slower: it leaves its execution units to the
// other thread of the core, and does not run ahead.
func relax()
