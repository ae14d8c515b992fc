package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// prefix begins the names of a lab's network namespaces, which are links in
// namespaceDir, as iproute2 has them. Before a lab makes one, it makes a file of that name
// in ownDir, so that it removes no other's, and finds its own after a crash at any place.
const (
	prefix       = "weft-"
	namespaceDir = "/run/netns"
	ownDir       = "/run/weft-lab"
)

// namespace is the network namespace of one node.
type namespace struct {
	name   string
	handle netns.NsHandle
	*netlink.Handle
}

// newNamespace makes a network namespace.
func newNamespace(node string) (_ *namespace, err error) {
	n := &namespace{name: prefix + node}
	if _, err := os.Lstat(filepath.Join(namespaceDir, n.name)); err == nil {
		return nil, fmt.Errorf("network namespace %s exists, and no lab has made it: rename the node, or remove it by ip netns del %s", n.name, n.name)
	}
	if err := os.WriteFile(filepath.Join(ownDir, n.name), nil, 0o644); err != nil {
		return nil, err
	}
	if err = onOwnThread(func() error {
		n.handle, err = netns.NewNamed(n.name)
		return err
	}); err != nil {
		return nil, fmt.Errorf("network namespace %s: %w", n.name, err)
	}
	return n, n.open()
}

// openNamespace opens the one that another process has made.
func openNamespace(node string) (_ *namespace, err error) {
	n := &namespace{name: prefix + node}
	if n.handle, err = netns.GetFromName(n.name); err != nil {
		return nil, fmt.Errorf("network namespace %s: %w; is the lab up?", n.name, err)
	}
	return n, n.open()
}

func (n *namespace) open() (err error) {
	if n.Handle, err = netlink.NewHandleAt(n.handle); err != nil {
		return fmt.Errorf("network namespace %s: %w", n.name, err)
	}
	return nil
}

func (n *namespace) close() {
	if n.Handle != nil {
		n.Handle.Close()
	}
	n.handle.Close()
}

// do runs a function in the namespace: what it opens belongs there.
func (n *namespace) do(run func() error) error {
	return onOwnThread(func() error {
		if err := netns.Set(n.handle); err != nil {
			return err
		}
		return run()
	})
}

// onOwnThread runs a function on a thread that ends with it: a thread that has changed
// its namespace serves no other goroutine.
func onOwnThread(run func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock
		done <- run()
	}()
	return <-done
}

// setting writes a sysctl of the namespace.
func (n *namespace) setting(name, value string) error {
	return n.do(func() error { return os.WriteFile("/proc/sys/net/"+name, []byte(value), 0) })
}

// claim is the lock of the lab that is up, on ownDir. It ends with the process, however that ends.
type claim struct{ dir *os.File }

func newClaim() (*claim, error) {
	for {
		if err := os.MkdirAll(ownDir, 0o755); err != nil {
			return nil, err
		}
		dir, err := os.Open(ownDir)
		if errors.Is(err, os.ErrNotExist) {
			continue // removed in between
		}
		if err != nil {
			return nil, err
		}
		c := &claim{dir}
		if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			c.end()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, errors.New("another lab is up: end it, or remove it by weft lab down")
			}
			return nil, err
		}
		if c.holds() {
			return c, nil
		}
		c.end()
	}
}

// holds reports whether the lab has not been removed by another process.
func (c *claim) holds() bool {
	mine, err := c.dir.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(ownDir)
	return err == nil && os.SameFile(mine, now)
}

func (c *claim) end() { _ = c.dir.Close() } // nothing was written to it

// Remove removes all network namespaces that labs have made, and returns their names.
// Interfaces and programs in them go with them; routers are ended first.
func Remove() (removed []string, err error) {
	if removed, err = removeNamespaces(); err != nil {
		return removed, err
	}
	if err := os.Remove(ownDir); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return removed, err
	}
	return removed, nil
}

// removeNamespaces is Remove without the directory, which a lab that is up has locked.
func removeNamespaces() (removed []string, err error) {
	if err := removeRouters(); err != nil {
		return nil, fmt.Errorf("remove routers: %w", err)
	}
	all, err := os.ReadDir(ownDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		switch err := netns.DeleteNamed(e.Name()); {
		case err == nil:
			removed = append(removed, e.Name())
		case !errors.Is(err, os.ErrNotExist):
			return removed, fmt.Errorf("remove network namespace %s: %w", e.Name(), err)
		}
		if err := os.Remove(filepath.Join(ownDir, e.Name())); err != nil {
			return removed, err
		}
	}
	return removed, nil
}
