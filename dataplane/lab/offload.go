package lab

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of SIOCETHTOOL, of linux/ethtool.h.
const (
	ethtoolSetReceiveChecksum = 0x15 // ETHTOOL_SRXCSUM
	ethtoolSetSendChecksum    = 0x17 // ETHTOOL_STXCSUM
)

// withoutOffload has the kernel compute and check all checksums at an interface of the calling
// thread's network namespace, and send single segments: as on a wire. Otherwise a veth pair hands
// packets over with their checksums still to be computed, and receivers trust them.
func withoutOffload(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("offloads of %s: %w", name, err)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written to it
	for _, command := range []uint32{ethtoolSetReceiveChecksum, ethtoolSetSendChecksum} {
		value := struct{ command, on uint32 }{command, 0}
		request := struct {
			name [unix.IFNAMSIZ]byte
			data unsafe.Pointer
			_    [16]byte
		}{data: unsafe.Pointer(&value)}
		copy(request.name[:unix.IFNAMSIZ-1], name)
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
		runtime.KeepAlive(&value)
		if errno != 0 {
			return fmt.Errorf("offloads of %s: %w", name, errno)
		}
	}
	return nil
}
