package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
)

// maxEvent bounds the bytes of one event; the state of the largest fabric fits.
const maxEvent = 64 << 20

// Events yields events of the given types, or of all types. It reconnects after a
// broken connection and resumes; an api.ResetEvent reports missed events. It ends
// with ctx, or with an error that retrying does not fix.
func (c *Client) Events(ctx context.Context, types ...string) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		stream := &http.Client{Transport: c.http.Transport} // without a timeout, as the stream never ends
		last, wait := "", retryFirst
		for {
			n, err := c.readEvents(ctx, stream, types, &last, yield)
			if errors.Is(err, errStop) || ctx.Err() != nil {
				return
			}
			var p *Problem
			if errors.As(err, &p) && p.Status < 500 {
				yield(nil, err)
				return
			}
			if n > 0 {
				wait = retryFirst
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			wait = min(2*wait, retryMax)
		}
	}
}

const (
	retryFirst = 100 * time.Millisecond
	retryMax   = 5 * time.Second
)

var errStop = errors.New("the caller stopped iterating")

// readEvents reads one connection and returns the number of events received.
func (c *Client) readEvents(ctx context.Context, stream *http.Client, types []string, last *string,
	yield func(api.Event, error) bool,
) (n int, err error) {
	q := url.Values{}
	if len(types) > 0 {
		q.Set("types", strings.Join(types, ","))
	}
	r, err := c.request(ctx, "GET", "/events", q, nil)
	if err != nil {
		return 0, err
	}
	if *last != "" {
		r.Header.Set("Last-Event-ID", *last)
	}
	resp, err := stream.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("GET /events: %w", readProblem(resp))
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
	var name, id, data string
	for lines.Scan() {
		switch key, value, _ := strings.Cut(lines.Text(), ": "); key {
		case "id":
			id = value
		case "event":
			name = value
		case "data":
			data = value
		case "":
			if lines.Text() != "" || name == "" {
				continue // a heartbeat, or the line after it
			}
			e, err := api.DecodeEvent(name, []byte(data))
			if (e != nil || err != nil) && !yield(e, err) {
				return n, errStop
			}
			n++
			if id != "" {
				*last = id
			}
			name, id, data = "", "", ""
		}
	}
	if err := lines.Err(); err != nil {
		return n, err
	}
	return n, io.EOF
}
