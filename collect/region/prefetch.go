//go:build !amd64 || purego

package region

// Prefetch loads words that will soon be written, and uses none, so that their
// ways through memory overlap.
func Prefetch(words []uint64, at []uint64) {
	for _, i := range at {
		Load(&words[i])
	}
}
