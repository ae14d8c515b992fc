package siege

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/control/api"
)

// TestChaos does to a service what machines do to processes. It goes on, its
// accounts are exact, and it invents nothing.
func TestChaos(t *testing.T) {
	s := prepare(t, hardened())
	s.start()
	c := &chaos{service: s, honest: newHonest(s)}
	c.chatter()
	c.play()
	c.hole = c.faults()[:1]
	c.hole[0].begin()
	s.finds(c.hole, s.born)
	for _, one := range []struct {
		name string
		do   func(*chaos, *testing.T)
	}{
		{"stopped for seconds", (*chaos).stopped},
		{"clock steps", (*chaos).clockSteps},
		{"out of files", (*chaos).outOfFiles},
		{"disk full", (*chaos).diskFull},
		{"killed and started again", (*chaos).killed},
		{"damaged store", (*chaos).damagedStore},
	} {
		t.Run(one.name, func(t *testing.T) {
			defer s.during(t)()
			one.do(c, t)
			s.goesOn(t, nobody)
			s.sameIncidents(t, c.hole, nobody)
		})
	}
	s.stop()
}

// chaos is a service and its fabric, which has a black hole.
type chaos struct {
	*service
	*honest
	hole []fault
}

// killed: what the API has shown is there after a power failure, and the same fabric
// is analysed again.
func (c *chaos) killed(t *testing.T) {
	s := c.service
	for range 2 {
		s.goesOn(t, nobody)
		shown := map[string]bool{}
		for _, in := range s.incidents() {
			shown[in.ID] = true
		}
		traces, err := s.api.Traces(t.Context(), api.TracesQuery{})
		if err != nil {
			t.Fatal(err)
		}
		s.kill()
		s.fixPorts()
		s.start()
		for _, in := range s.incidents() {
			delete(shown, in.ID)
		}
		for _, tr := range traces.Items {
			if _, err := s.api.Trace(t.Context(), tr.ID); err != nil {
				t.Errorf("trace %s was shown, and is gone: %v", tr.ID, err)
			}
		}
		if len(shown) > 0 {
			t.Errorf("incidents that were shown are gone: %v", shown)
		}
	}
}

// fixPorts has the service listen at the addresses that it has now when it starts
// again.
func (s *service) fixPorts() {
	s.t.Helper()
	text, err := os.ReadFile(s.path("serve.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("serve.yaml", replaceListen(string(text), map[string]string{"dta": s.DTA.String(), "int": s.INT.String(), "api": s.API}))
}

// stopped: a process that does not run for seconds loses what its socket cannot
// hold, counts it, and takes nothing of it for a fault of the fabric.
func (c *chaos) stopped(t *testing.T) {
	c.signal(syscall.SIGSTOP)
	before := c.sent.Load()
	c.eventually("the fabric reports", func() bool { return c.sent.Load() >= before+3000 })
	c.signal(syscall.SIGCONT)
	c.goesOn(t, nobody)
	c.exact(t, c.honest)
}

// exact compares what was sent with what the service says has become of it.
func (s *service) exact(t *testing.T, l *honest) {
	t.Helper()
	l.pause(func() {
		sent := l.sent.Load()
		var told string
		s.eventually("an account of every report that was sent", func() bool {
			h := s.health()
			in, lost := stage(h, "translator")
			_, socket := stage(h, "transport")
			told = fmt.Sprintf("%d sent, %d came, %v, %v", sent, in.In, lost, socket)
			return in.In+socket["missing"] == sent
		})
		t.Log(told)
	})
}

// clockSteps: the clock of the service's host is set to another hour. Reports show
// that it is wrong, the analyses go on, and an alert says so until it is right again.
func (c *chaos) clockSteps(t *testing.T) {
	alert := func() bool { return strings.Contains(strings.Join(c.health().Alerts, "; "), "wall clock is off") }
	for _, step := range []time.Duration{time.Hour, -time.Hour, 0} {
		c.clock.step.Store(int64(step))
		c.eventually(fmt.Sprintf("a step to %v is noticed", step), func() bool { return alert() == (step != 0) })
		c.goesOn(t, nobody)
		c.sameIncidents(t, c.hole, nobody)
	}
}

// diskFull: nothing can be written for a while. Records are counted as failed, the
// analyses go on, and new records are kept when there is room again.
func (c *chaos) diskFull(t *testing.T) {
	defer c.take(t, unix.RLIMIT_FSIZE, 4096)()
	failed := func() uint64 { _, lost := stage(c.health(), "store"); return lost["failed"] }
	c.eventually("records cannot be written", func() bool { return failed() > 0 })
	operate(c.service).answered(t, c.service)
	c.take(t, unix.RLIMIT_FSIZE, unix.RLIM_INFINITY)
	kept := func() uint64 { st, _ := stage(c.health(), "store"); return st.Out }
	before := kept()
	c.eventually("records are kept again", func() bool { return kept() > before+1000 })
}

// take sets a limit of the service's process, until the returned function is called.
func (s *service) take(t *testing.T, resource int, n uint64) (giveBack func()) {
	t.Helper()
	var old unix.Rlimit
	pid := s.cmd.Process.Pid
	err := unix.Prlimit(pid, resource, nil, &old)
	if err == nil {
		err = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: min(n, old.Max), Max: old.Max}, nil)
	}
	if err != nil {
		t.Skipf("the limit of another process cannot be set: %v", err)
	}
	return func() {
		if err := unix.Prlimit(pid, resource, &old, nil); err != nil {
			t.Error(err)
		}
	}
}

// outOfFiles: connections that use up all files of a process cost the API some time,
// never the reports.
func (c *chaos) outOfFiles(t *testing.T) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer c.take(t, unix.RLIMIT_NOFILE, uint64(len(open)+40))()
	var conns []net.Conn
	for range 150 {
		conn, err := net.DialTimeout("tcp", c.API, 5*time.Second)
		if err != nil {
			break // there are no more
		}
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		conn.Close()
	}
	taken := func() uint64 { st, _ := stage(c.health(), "analyzers"); return st.Out }
	before := taken()
	c.eventually("reports are analysed", func() bool { return taken() > before+1000 })
}

// damagedStore: a store that cannot be read is set aside, and a new one begins.
func (c *chaos) damagedStore(t *testing.T) {
	s := c.service
	s.stop()
	f, err := os.OpenFile(s.path("weft.duckdb"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	junk := make([]byte, 64)
	for at := int64(0); at < 64<<10; at += 512 {
		if _, err := f.WriteAt(junk, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s.fixPorts()
	s.start()
	aside, err := filepath.Glob(s.path("weft.duckdb.*"))
	if err != nil || len(aside) == 0 {
		t.Errorf("the damaged file is not kept: %v", err)
	}
}
