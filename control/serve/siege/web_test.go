package siege

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
)

// mob attacks the API from a stranger's address.
type mob struct {
	t      testing.TB
	s      *service
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	dials  atomic.Uint64 // connections that were made
	guess  atomic.Uint64 // wrong tokens that were answered
}

func newMob(s *service) *mob {
	m := &mob{t: s.t, s: s}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	s.t.Cleanup(m.stop)
	return m
}

func (m *mob) stop() { m.cancel(); m.wg.Wait() }

// dial opens a connection.
func (m *mob) dial() (net.Conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: stranger.AsSlice()}}
	conn, err := d.DialContext(m.ctx, "tcp", m.s.API)
	if err == nil {
		m.dials.Add(1)
	}
	return conn, err
}

// keep has n connections open all the time, each of which does one thing and then
// waits until it is closed.
func (m *mob) keep(n int, do func(net.Conn)) {
	for range n {
		m.wg.Go(func() {
			for m.ctx.Err() == nil {
				conn, err := m.dial()
				if err != nil {
					m.pause(time.Second)
					continue
				}
				end := context.AfterFunc(m.ctx, func() { conn.Close() })
				do(conn)
				_, _ = io.Copy(io.Discard, conn) // until one side closes it
				end()
				conn.Close()
				m.pause(time.Second)
			}
		})
	}
}

func (m *mob) pause(d time.Duration) {
	select {
	case <-m.ctx.Done():
	case <-time.After(d):
	}
}

// idle connections make one request and stay.
func (m *mob) idle(n int) {
	m.keep(n, func(c net.Conn) { fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") })
}

// silent connections say nothing.
func (m *mob) silent(n int) { m.keep(n, func(net.Conn) {}) }

// slow connections never finish their first request.
func (m *mob) slow(n int) {
	m.keep(n, func(c net.Conn) {
		for _, err := fmt.Fprint(c, "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n"); err == nil && m.ctx.Err() == nil; {
			_, err = fmt.Fprint(c, "X-A: b\r\n")
			m.pause(2 * time.Second)
		}
	})
}

// streams ask for events without a token.
func (m *mob) streams(n int) {
	m.keep(n, func(c net.Conn) {
		fmt.Fprint(c, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
	})
}

// guesses tries wrong tokens on n connections, one after the other.
func (m *mob) guesses(n int) {
	for range n {
		m.keep(1, func(c net.Conn) {
			in := bufio.NewReader(c)
			for i := 0; m.ctx.Err() == nil; i++ {
				if _, err := fmt.Fprintf(c, "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong-token-number-%d\r\n\r\n", i); err != nil {
					return
				}
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					m.t.Error("a wrong token was accepted")
					return
				}
				m.guess.Add(1)
				m.pause(time.Millisecond)
			}
		})
	}
}

// operator asks the API with a token, and /healthz without, until it is stopped.
type operator struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	times    []time.Duration // of answers to requests with the token
	failed   []string        // requests that were not answered
	probes   int             // of /healthz
	unprobed []string        // that were not answered
}

// maxFailures is how many failures an operator remembers.
const maxFailures = 100

// operate starts an operator.
func operate(s *service) *operator {
	o := &operator{}
	ctx, cancel := context.WithCancel(context.Background())
	o.cancel = cancel
	c := s.client()
	note := func(list *[]string, err error) {
		if ctx.Err() == nil && len(*list) < maxFailures {
			*list = append(*list, time.Now().Format(time.TimeOnly)+" "+err.Error())
		}
	}
	o.wg.Go(func() {
		questions := []func() error{
			func() error { _, err := c.Health(ctx); return err },
			func() error { _, err := c.Incidents(ctx, api.IncidentsQuery{}); return err },
			func() error { _, err := c.State(ctx, time.Time{}); return err },
			func() error { _, err := c.Traces(ctx, api.TracesQuery{}); return err },
		}
		for i := 0; ctx.Err() == nil; i++ {
			began := time.Now()
			err := questions[i%len(questions)]()
			took := time.Since(began)
			o.mu.Lock()
			if err != nil {
				note(&o.failed, err)
			} else {
				o.times = append(o.times, took)
			}
			o.mu.Unlock()
			time.Sleep(25 * time.Millisecond)
		}
	})
	o.wg.Go(func() {
		// A probe has a connection of its own each time, as a kubelet's.
		probe := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
		for ctx.Err() == nil {
			resp, err := probe.Get("http://" + s.probeAddress() + "/healthz")
			if err == nil {
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					err = fmt.Errorf("/healthz: %s", resp.Status)
				}
			}
			o.mu.Lock()
			if o.probes++; err != nil {
				note(&o.unprobed, err)
			}
			o.mu.Unlock()
			time.Sleep(200 * time.Millisecond)
		}
	})
	s.t.Cleanup(o.stop)
	return o
}

func (o *operator) stop() { o.cancel(); o.wg.Wait() }

// percentile is of the answers' times.
func (o *operator) percentile(p float64) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.times) == 0 {
		return 0
	}
	list := slices.Sorted(slices.Values(o.times))
	return list[min(int(p*float64(len(list))), len(list)-1)]
}
