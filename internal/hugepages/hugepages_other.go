//go:build !linux

package hugepages

// Advise does nothing: the kernel decides.
func Advise[T any]([]T) {}

// Make makes a slice of n elements.
func Make[T any](n int) []T { return make([]T, n) }
