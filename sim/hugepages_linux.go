package sim

import (
	"syscall"
	"unsafe"
)

const hugePage = 2 << 20

// adviseHugePages asks the kernel for huge pages below some packets, and what is near
// them in the Go heap: its arenas are larger, and aligned. It is only advice.
func adviseHugePages(packets []Packet) {
	first := unsafe.Pointer(unsafe.SliceData(packets))
	before := uintptr(first) & (hugePage - 1)
	size := uintptr(len(packets))*unsafe.Sizeof(packets[0]) + before
	size = (size + hugePage - 1) &^ (hugePage - 1)
	syscall.Syscall(syscall.SYS_MADVISE, uintptr(first)-before, size, syscall.MADV_HUGEPAGE)
}
