package alerts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	batchSize  = 64 // alerts of one request to Alertmanager
	firstDelay = time.Second
	maxDelay   = time.Minute
	// lastWait is how long a controller that stops waits for the last delivery.
	lastWait = 2 * time.Second
)

// target is a receiver and what waits for it.
type target struct {
	Target
	cfg    *atomic.Pointer[Config]
	bearer atomic.Pointer[string] // token; empty: none
	wanted atomic.Pointer[Target] // whose Jobs are those of now; nil: the target was removed
	deps   *Deps
	queue  *queue
	client *http.Client
	delay  time.Duration // first delay after a failure
}

func newTarget(t Target, token string, cfg *atomic.Pointer[Config], deps *Deps) *target {
	to := &target{
		Target: t, cfg: cfg, deps: deps, queue: newQueue(cfg.Load().Queue), delay: firstDelay,
		client: &http.Client{
			// A redirect could carry the token elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	to.bearer.Store(&token)
	to.wanted.Store(&t)
	return to
}

// receives reports whether an alert is sent to the target now.
func (t *target) receives(a *Alert) bool {
	wanted := t.wanted.Load()
	return wanted != nil && wanted.wants(a)
}

// name is the target without what may be secret in its path.
func (t *target) name() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return t.Kind
	}
	return t.Kind + " " + u.Host
}

// run delivers what waits until ctx ends.
func (t *target) run(ctx context.Context) {
	defer t.queue.stop()
	failures := 0
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWait)
			defer cancel()
			for t.deliver(last) == nil && len(t.queue.take(1, t.deps.Now(), t.cfg.Load().Expire)) > 0 {
			}
			return
		case <-t.queue.wake:
		}
		for ctx.Err() == nil && len(t.queue.take(1, t.deps.Now(), t.cfg.Load().Expire)) > 0 {
			if err := t.deliver(ctx); err == nil {
				failures = 0
				continue
			} else if failures++; failures == 1 {
				t.deps.Log.Warn("alerts are not delivered; they are sent again", "target", t.name(), "err", err)
			}
			wait := time.NewTimer(min(t.delay<<min(failures-1, 10), maxDelay))
			select {
			case <-ctx.Done():
			case <-wait.C:
			}
			wait.Stop()
		}
	}
}

// errRejected is wrapped if a target refuses an alert for good.
var errRejected = errors.New("rejected")

// deliver sends what waits first. An error means that it is to be sent again.
func (t *target) deliver(ctx context.Context) error {
	n := 1
	if t.Kind == Alertmanager {
		n = batchSize
	}
	now := t.deps.Now()
	batch := t.queue.take(n, now, t.cfg.Load().Expire)
	if len(batch) == 0 {
		return nil
	}
	err := t.post(ctx, batch, now)
	switch {
	case errors.Is(err, errRejected):
		t.deps.Log.Error("alerts are rejected", "target", t.name(), "alerts", len(batch), "err", err)
		t.queue.done(batch, true, err)
		return nil
	case err != nil:
		t.queue.failed(err)
		return err
	}
	t.queue.done(batch, false, nil)
	return nil
}

// post sends alerts in one request.
func (t *target) post(ctx context.Context, batch []queued, now time.Time) error {
	to, body := t.URL, any(batch[0].Alert)
	if t.Kind == Alertmanager {
		list := make([]managed, len(batch))
		for i := range batch {
			list[i] = batch[i].managed(now, 3*t.cfg.Load().Repeat)
		}
		to, body = strings.TrimSuffix(t.URL, "/")+"/api/v2/alerts", list
	}
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("%w: %w", errRejected, err)
	}
	ctx, done := context.WithTimeout(ctx, t.cfg.Load().Timeout)
	defer done()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%w: %w", errRejected, err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token := *t.bearer.Load(); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := t.client.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // the URL may hold a secret
		}
		return err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
	switch {
	case resp.StatusCode < 300:
		return nil
	case resp.StatusCode < 500 && resp.StatusCode != http.StatusRequestTimeout && resp.StatusCode != http.StatusTooManyRequests:
		return fmt.Errorf("%w: %s: %.200q", errRejected, resp.Status, text)
	}
	return fmt.Errorf("%s: %.200q", resp.Status, text)
}
