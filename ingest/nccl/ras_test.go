package nccl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/wire/nccl"
)

// report is what a RAS service of NCCL 2.29 answers, after its manual.
const report = `{
  "nccl_version": "2.29.1", "cuda_runtime_version": 13000, "cuda_driver_version": 13000, "timestamp": "2025-12-19 13:06:53",
  "communicators_count": 1,
  "communicators": [{
    "hash": "0xae94", "secondary_hash": "0xb7:0xb8", "size": 3, "ranks_count": 2, "missing_ranks_count": 1,
    "ranks": [
      {"rank": 0, "host": "172.16.0.1", "status": {"init_state": 0, "async_error": 0, "abort_flag": false}, "collective_counts": {"AllReduce": 12}},
      {"rank": 1, "host": "172.16.0.2", "status": {"init_state": 0, "async_error": 0, "abort_flag": false}, "collective_counts": {"AllReduce": 12}}
    ],
    "missing_ranks": [{"rank": 2, "host": "172.16.0.3", "status": {"unresponsive": true, "considered_dead": false}}]
  }],
  "ras": {"collection_time_sec": 0.000, "timeouts_count": 0}
}
`

// rasServer is a RAS service: it takes commands in lines, in any case, answers each with a line,
// and a status with a report, after which it closes the connection.
type rasServer struct {
	net.Listener
	report string
	old    bool // before 2.28: it has no formats
	asked  atomic.Uint64
}

func startRAS(t *testing.T, s *rasServer) *rasServer {
	t.Helper()
	var err error
	if s.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := s.Accept()
			if err != nil {
				return
			}
			s.serve(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { s.Close(); <-ended })
	return s
}

func (s *rasServer) serve(c io.ReadWriter) {
	s.asked.Add(1)
	lines := bufio.NewScanner(c)
	format := "text"
	for lines.Scan() {
		switch cmd := strings.ToLower(strings.TrimRight(lines.Text(), "\r")); {
		case strings.HasPrefix(cmd, "client protocol "):
			fmt.Fprintf(c, "SERVER PROTOCOL 2\n")
		case strings.HasPrefix(cmd, "timeout "):
			fmt.Fprintf(c, "OK\n")
		case cmd == "set format json" && !s.old:
			format = "json"
			fmt.Fprintf(c, "OK\n")
		case cmd == "verbose status" || cmd == "status":
			if format == "json" {
				_, _ = io.WriteString(c, s.report)
			} else {
				fmt.Fprintf(c, "NCCL version 2.24.3 compiled with CUDA 12.4\n\nJob summary\n===========\n")
			}
			return
		default:
			fmt.Fprintf(c, "ERROR: Unknown command %s\n", cmd)
		}
	}
}

func TestAskRAS(t *testing.T) {
	s := startRAS(t, &rasServer{report: report})
	d, err := askRAS(t.Context(), s.Addr().String(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Members) != 3 || d.Members[0].Host != "172.16.0.1" || !d.Members[2].Missing || d.Members[1].Launched["AllReduce"] != 12 {
		t.Errorf("members %+v; want three, of which rank 2 is missing", d.Members)
	}
}

// TestRASAnswers: what is no report is an error that says why.
func TestRASAnswers(t *testing.T) {
	long := strings.Repeat("x", 2*maxLine)
	for name, one := range map[string]struct {
		server *rasServer
		answer string // to the first command, instead of a server
		want   error
		text   string
	}{
		"no formats":     {server: &rasServer{old: true}, want: errNoJSON},
		"another server": {answer: "SSH-2.0-OpenSSH_9.2\r\n", want: errAnswer},
		"a long line":    {answer: long, want: errAnswer},
		"closes":         {answer: "", want: io.EOF},
		"cut":            {server: &rasServer{report: report[:300]}, want: io.ErrUnexpectedEOF},
		"a file":         {server: &rasServer{report: `{"header":{"id":"1","n_ranks":1},"metadata":{"inspector_output_format_version":"v4.0"}}`}, want: errAnswer},
		"no JSON":        {server: &rasServer{report: "NCCL version 2.29"}, text: "neither a flight recorder dump"},
		"too many ranks": {
			server: &rasServer{report: `{"nccl_version":"2.29","communicators":[{"hash":"1","ranks":[{"rank":0}` + strings.Repeat(`,{"rank":1}`, maxMembers) + `]}]}`},
			want:   errTooLong,
		},
		"endless": {
			server: &rasServer{report: `{"nccl_version":"2.29","x":[""` + strings.Repeat(`,"`+long+`"`, maxReport/len(long)) + `]}`}, want: errTooLong,
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn := &answering{answer: one.answer}
			var err error
			if one.server != nil {
				_, err = askRAS(t.Context(), startRAS(t, one.server).Addr().String(), time.Minute)
			} else {
				_, err = converse(conn, time.Second)
			}
			if err == nil || one.want != nil && !errors.Is(err, one.want) || !strings.Contains(err.Error(), one.text) {
				t.Errorf("error %v; want %v %s", err, one.want, one.text)
			}
		})
	}
}

// answering is a connection whose other end has said all at once.
type answering struct {
	answer string
	said   bytes.Buffer
}

func (a *answering) Read(p []byte) (int, error) {
	if a.answer == "" {
		return 0, io.EOF
	}
	n := copy(p, a.answer)
	a.answer = a.answer[n:]
	return n, nil
}

func (a *answering) Write(p []byte) (int, error) { return a.said.Write(p) }

// TestSilentRAS: a service that takes connections and says nothing costs the time-out.
func TestSilentRAS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f := newFollower(&Config{Timeout: 50 * time.Millisecond}, &decoder{take: func(*nccl.Dump) int { return 0 }})
	if f.ask(t.Context(), l.Addr().String()) {
		t.Error("asked a service that is silent; want it to fail")
	}
	if n := f.unreachable.Load(); n != 1 {
		t.Errorf("%d unreachable; want 1", n)
	}
	if list := f.Alerts(); len(list) != 1 || !strings.Contains(list[0], l.Addr().String()+" is away") {
		t.Errorf("alerts %q; want the service's address", list)
	}
}

func FuzzConverse(f *testing.F) {
	for _, text := range []string{"SERVER PROTOCOL 2\nOK\nOK\n" + report, "SERVER PROTOCOL 2\nOK\nERROR: x\n", "\n\n\n{", "SERVER PROTOCOL \nok\r\nok\n{\"nccl_version\":1}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		conn := &answering{answer: string(data)}
		d, err := converse(conn, time.Second)
		if err == nil && (len(d.Members) > maxMembers || len(d.Records) > 0) {
			t.Fatalf("%d members, %d collectives", len(d.Members), len(d.Records))
		}
		if said := conn.said.String(); !strings.HasPrefix(said, "CLIENT PROTOCOL 2\n") || strings.Count(said, "\n") > 4 {
			t.Fatalf("said %q", said)
		}
	})
}
