//go:build !linux

package sim

// adviseHugePages does nothing: the kernel decides.
func adviseHugePages([]Packet) {}
