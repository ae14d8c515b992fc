// Package hugepages asks the kernel for huge pages below large slices that are read in no
// order: a CPU finds 4 KiB pages of a few megabytes at once, and no more.
package hugepages

import (
	"syscall"
	"unsafe"
)

const hugePage = 2 << 20

// Advise asks for huge pages below a slice that was just made, and what is near it in the Go
// heap: its arenas are larger, and aligned. It is only advice, and good for memory that was
// not written yet.
func Advise[T any](list []T) {
	if len(list) == 0 {
		return
	}
	first := unsafe.Pointer(unsafe.SliceData(list))
	before := uintptr(first) & (hugePage - 1)
	size := uintptr(len(list))*unsafe.Sizeof(list[0]) + before
	size = (size + hugePage - 1) &^ (hugePage - 1)
	syscall.Syscall(syscall.SYS_MADVISE, uintptr(first)-before, size, syscall.MADV_HUGEPAGE)
}

// least is what a slice that Make makes has at least to be worth the advice.
const least = 1 << 18

// Make makes a slice of n elements, on huge pages if it is large.
func Make[T any](n int) []T {
	list := make([]T, n)
	if uintptr(n)*unsafe.Sizeof(*new(T)) >= least {
		Advise(list)
	}
	return list
}
