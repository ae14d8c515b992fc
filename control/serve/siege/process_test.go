package siege

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// start starts the process and waits until it serves.
func (s *service) start() {
	s.t.Helper()
	if err := os.Remove(s.path("addresses.json")); err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	log, err := os.OpenFile(s.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.cmd = exec.Command(os.Args[0])
	s.cmd.Env = append(os.Environ(), childDir+"="+s.dir)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	// The service ends with the test, also with one that is killed.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.exited = make(chan error, 1)
	go func() { s.exited <- s.cmd.Wait() }()
	var text []byte
	s.eventually("the service listens", func() bool {
		text, err = os.ReadFile(s.path("addresses.json"))
		return err == nil
	})
	if err := json.Unmarshal(text, &s.addresses); err != nil {
		s.t.Fatal(err)
	}
	s.api = s.client()
}

// logTail is the end of the log.
func (s *service) logTail() string {
	b, _ := os.ReadFile(s.path("log"))
	return string(b[max(0, len(b)-4096):])
}

// kill ends the process as a power failure would, if it is running.
func (s *service) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.exited
	s.cmd = nil
}

// stop ends the process as an operator does, and fails the test if it ends with an
// error.
func (s *service) stop() {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	select {
	case err := <-s.exited:
		if err != nil {
			s.t.Errorf("the service ended with: %v\n%s", err, s.logTail())
		}
		s.cmd = nil
	case <-time.After(patience):
		s.t.Fatalf("the service has not ended within %v", patience)
	}
}

func (s *service) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// status is a field of /proc/PID/status in bytes, such as VmRSS and VmHWM.
func (s *service) status(field string) model.Bytes {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid)) // 0 if the process has ended
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return model.Bytes(kib) * model.KiB
		}
	}
	return 0
}
