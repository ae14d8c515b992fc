package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
)

// Topology returns the nodes, ports and links of the fabric. The client keeps it and
// fetches it again only after a change, so callers share the lists of the result and
// must not modify them.
func (c *Client) Topology(ctx context.Context) (api.Topology, error) {
	c.mu.Lock()
	known, tag := c.topology, c.topologyTag
	c.mu.Unlock()
	b, tag, err := c.callTagged(ctx, "GET", "/topology", nil, nil, tag)
	if errors.Is(err, errUnchanged) {
		return *known, nil
	}
	if err != nil {
		return api.Topology{}, err
	}
	t := new(api.Topology)
	if err := json.Unmarshal(b, t); err != nil {
		return api.Topology{}, fmt.Errorf("GET /topology: read response: %w", err)
	}
	c.mu.Lock()
	c.topology, c.topologyTag = t, tag
	c.mu.Unlock()
	return *t, nil
}

// PodTopology returns the nodes of some pods, and the links with an end in them. Pod
// -1 has the nodes in no pod.
func (c *Client) PodTopology(ctx context.Context, pods ...int) (api.Topology, error) {
	return callJSON[api.Topology](ctx, c, "GET", "/topology", podParams(pods), nil)
}

func podParams(pods []int) url.Values {
	q := url.Values{}
	if len(pods) > 0 {
		text := make([]string, len(pods))
		for i, p := range pods {
			text[i] = strconv.Itoa(p)
		}
		q.Set("pods", strings.Join(text, ","))
	}
	return q
}

// State returns the state of every port and node at a past time, or now if at is
// zero.
func (c *Client) State(ctx context.Context, at time.Time) (api.State, error) {
	q := url.Values{}
	if !at.IsZero() {
		q.Set("at", at.UTC().Format(time.RFC3339Nano))
	}
	return callJSON[api.State](ctx, c, "GET", "/state", q, nil)
}

// UpdateState brings a state up to date, which State or an earlier call returned: it
// fetches only what has changed. A zero state becomes the whole one. All calls must
// name the same pods; without any, it is of the whole fabric.
func (c *Client) UpdateState(ctx context.Context, st *api.State, pods ...int) error {
	q := podParams(pods)
	if st.Snapshot != "" {
		q.Set("since", st.Snapshot)
	}
	changes, err := callJSON[api.State](ctx, c, "GET", "/state", q, nil)
	if err != nil {
		return err
	}
	st.Apply(&changes)
	return nil
}

// Overview returns sums of the state by pod and by group of links.
func (c *Client) Overview(ctx context.Context) (api.Overview, error) {
	return callJSON[api.Overview](ctx, c, "GET", "/overview", nil, nil)
}
