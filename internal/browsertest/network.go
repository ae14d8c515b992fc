package browsertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// isolated marks the process that has a network namespace of its own.
const isolated = "WEFT_BROWSERTEST_ISOLATED"

// Main runs the tests of a package, for its TestMain, in a network namespace with nothing
// but the loopback interface. A browser aborts its requests when an interface of its
// namespace comes or goes, and tests of other packages make interfaces. Only root may make
// a namespace; others run the tests where they are.
func Main(m *testing.M) {
	if os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	if os.Getenv(isolated) == "" {
		os.Exit(runIsolated())
	}
	if err := setUpLoopback(); err != nil {
		fmt.Fprintln(os.Stderr, "loopback of the tests' network namespace:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func setUpLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// runIsolated runs this program again in a new namespace, and returns its exit code.
func runIsolated() int {
	runtime.LockOSThread() // the child is killed when the thread that started it ends
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), isolated+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1) // a signal has none
	case err != nil:
		fmt.Fprintln(os.Stderr, "tests in a network namespace:", err)
		return 1
	}
	return 0
}
