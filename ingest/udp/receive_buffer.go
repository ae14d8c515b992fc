//go:build linux

package udp

import (
	"os"

	"golang.org/x/sys/unix"
)

// setReceiveBuffer asks for a receive buffer. The privileged form exceeds
// net.core.rmem_max; without the privilege the kernel grants no more than that.
func setReceiveBuffer(fd, size int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size) == nil {
		return nil
	}
	return os.NewSyscallError("setsockopt SO_RCVBUF", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size))
}

// GrantedBuffer returns how much of a receive buffer the kernel grants a socket of this
// process.
func GrantedBuffer(size int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := setReceiveBuffer(fd, size); err != nil {
		return 0, err
	}
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	// Linux doubles what it grants, for what it counts beside the data.
	return min(n/2, size), os.NewSyscallError("getsockopt SO_RCVBUF", err)
}
