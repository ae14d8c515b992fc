package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// routerDir holds a directory for each router: configurations, sockets for vtysh, logs.
const routerDir = "/run/weft-frr"

// daemonDir is where packages have FRR's daemons, and daemonUser whom they run as.
const (
	daemonDir  = "/usr/lib/frr"
	daemonUser = "frr"
)

// daemons are those of a router, in the order in which they start.
var daemons = [...]string{"zebra", "bgpd"}

// checkFRR returns an error if FRR is not installed.
func checkFRR(dir string) error {
	for _, name := range daemons {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%w; routing by BGP needs FRR: install the package frr", err)
		}
	}
	return nil
}

// router is FRR of one switch. Its daemons end with the process that started them, however that
// ends: each ends when its standard input does.
type router struct {
	name     string
	dir      string
	commands []*exec.Cmd
	inputs   []io.Closer
	running  sync.WaitGroup
	ended    context.Context // when a daemon has ended; the cause says which
	stop     context.CancelCauseFunc
}

// errStopped is the cause of an end that was asked for.
var errStopped = errors.New("stopped")

// startRouter starts the daemons of a switch in its network namespace.
func startRouter(ns *namespace, configs [len(daemons)]string) (_ *router, err error) {
	r := &router{name: ns.name, dir: filepath.Join(routerDir, ns.name)}
	r.ended, r.stop = context.WithCancelCause(context.Background())
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return nil, err
	}
	for i, name := range daemons {
		if err := os.WriteFile(filepath.Join(r.dir, name+".conf"), []byte(configs[i]), 0o644); err != nil {
			return nil, err
		}
	}
	if err := giveAway(r.dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("router %s: %w", r.name, err)
			_ = r.close() // of a daemon that has ended, err says so
		}
	}()
	return r, ns.do(func() error {
		if err := ownTemporaryFiles(); err != nil {
			return err
		}
		for _, name := range daemons {
			if err := r.startDaemon(name); err != nil {
				return err
			}
		}
		return nil
	})
}

// giveAway makes daemonUser the owner of a directory and its files.
func giveAway(dir string) error {
	u, err := user.Lookup(daemonUser)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, uid, gid))
	})
}

// ownTemporaryFiles gives the calling thread, and what it starts, a /var/tmp of its own: FRR's
// daemons leave a directory there for each process.
func ownTemporaryFiles() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("mount namespace: %w", err)
	}
	if err := unix.Mount("tmpfs", "/var/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m,mode=1777"); err != nil {
		return fmt.Errorf("mount /var/tmp: %w", err)
	}
	return nil
}

// startDaemon starts a daemon, and returns when it answers.
func (r *router) startDaemon(name string) error {
	log, err := os.Create(filepath.Join(r.dir, name+".log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the daemon writes to its own
	file := func(suffix string) string { return filepath.Join(r.dir, name+suffix) }
	cmd := exec.Command(filepath.Join(daemonDir, name), "--terminal", "--config_file", file(".conf"), "--pid_file", file(".pid"),
		"--vty_socket", r.dir, "--socket", filepath.Join(r.dir, "zserv"), "--vty_port", "0", "--log", "stdout")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the lab, which ends them in order
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.commands, r.inputs = append(r.commands, cmd), append(r.inputs, input)
	r.running.Go(func() {
		err := cmd.Wait()
		if err == nil {
			err = errors.New("exit status 0")
		}
		r.stop(fmt.Errorf("%s ended: %w%s", name, err, lastLine(file(".log"))))
	})
	return r.await(name)
}

// startTime is what a daemon may take until it answers, on a machine that is busy.
const startTime = 30 * time.Second

// await asks a daemon for its sockets until it has them. bgpd, which finds zebra without one, would
// try again ten seconds later.
func (r *router) await(name string) error {
	sockets := []string{name + ".vty"}
	if name == "zebra" {
		sockets = append(sockets, "zserv")
	}
	late := time.After(startTime)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for _, s := range sockets {
		for !answers(filepath.Join(r.dir, s)) {
			select {
			case <-r.ended.Done():
				return context.Cause(r.ended)
			case <-late:
				return fmt.Errorf("%s has not opened %s in %v%s", name, s, startTime, lastLine(filepath.Join(r.dir, name+".log")))
			case <-again.C:
			}
		}
	}
	return nil
}

func answers(socket string) bool {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

// lastLine returns what a daemon has logged last, for an error.
func lastLine(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return "; " + log + " ends with: " + string(lines[len(lines)-1])
}

// stopTime is what daemons may take to end before they are killed.
const stopTime = 5 * time.Second

// close ends the daemons. It returns an error if one has ended before.
func (r *router) close() error {
	var err error
	if cause := context.Cause(r.ended); cause != nil {
		err = fmt.Errorf("router %s: %w", r.name, cause)
	}
	r.stop(errStopped)
	for _, in := range r.inputs {
		_ = in.Close() // of a daemon that has ended, it is closed
	}
	late := time.AfterFunc(stopTime, func() {
		for _, c := range r.commands {
			_ = c.Process.Kill() // what has ended needs none
		}
	})
	defer late.Stop()
	r.running.Wait()
	return err
}

// removeRouters ends the routers that labs have left, and removes their files. A daemon is known by
// its file of a process, its program, and its network namespace.
func removeRouters() error {
	all, err := os.ReadDir(routerDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range all {
		dir := filepath.Join(routerDir, e.Name())
		for i := range daemons {
			if err := endDaemon(dir, daemons[len(daemons)-1-i], e.Name()); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return os.Remove(routerDir)
}

// endDaemon kills a daemon, if it runs, and waits for its end.
func endDaemon(dir, name, namespace string) error {
	text, err := os.ReadFile(filepath.Join(dir, name+".pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nil // it ended before it had written its number
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // it has ended
	}
	defer func() { _ = unix.Close(process) }() // nothing was written to it
	if !runs(pid, name, namespace) {
		return nil
	}
	if err := unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end %s of %s: %w", name, namespace, err)
	}
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, -1)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// runs reports whether a process is a daemon in a network namespace.
func runs(pid int, name, namespace string) bool {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil || filepath.Base(program) != name {
		return false
	}
	own, err := netns.GetFromName(namespace)
	if err != nil {
		return false
	}
	defer own.Close()
	of, err := netns.GetFromPid(pid)
	if err != nil {
		return false
	}
	defer of.Close()
	return own.Equal(of)
}
