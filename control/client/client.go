package client

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
	"sync"
	"time"

	"github.com/weft-telemetry/weft/control/api"
)

// maxResponse bounds the bytes read of a response: many times the state of the
// largest fabric.
const maxResponse = 256 << 20

// Client is a client of one controller. It is safe for concurrent use.
type Client struct {
	base  string
	token string
	http  *http.Client

	mu          sync.Mutex
	topology    *api.Topology // newest, so that an unchanged one is not sent again
	topologyTag string
}

// New returns a client of a server such as http://127.0.0.1:8080. The token may be
// empty. The client uses the transport and timeout of c, which may be nil.
func New(server, token string, c *http.Client) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("server %q, want a URL such as http://127.0.0.1:8080", server)
	}
	if c == nil {
		c = &http.Client{Timeout: 30 * time.Second}
	}
	return &Client{base: strings.TrimSuffix(u.String(), "/"), token: token, http: c}, nil
}

// Problem is an error response of the server (RFC 9457 problem details).
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Message  string `json:"message"`
		Location string `json:"location"`
	} `json:"errors"`
}

// Error returns the detail, the errors of fields, and the status, in one line.
func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	for _, e := range p.Errors {
		text += "; " + e.Location + ": " + e.Message
	}
	return fmt.Sprintf("%s (%d)", text, p.Status)
}

// statuses maps HTTP statuses to the errors of package api.
var statuses = map[int]error{
	http.StatusNotFound: api.ErrNotFound, http.StatusUnprocessableEntity: api.ErrInvalid,
	http.StatusConflict:        api.ErrConflict,
	http.StatusTooManyRequests: api.ErrBusy, http.StatusServiceUnavailable: api.ErrBusy,
	http.StatusNotImplemented: api.ErrUnsupported,
}

// Is reports whether target is the error of package api for the status.
func (p *Problem) Is(target error) bool { return statuses[p.Status] == target }

// request builds an API request.
func (c *Client) request(ctx context.Context, method, path string, query url.Values, body any) (*http.Request, error) {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(b)
	}
	target := c.base + api.Prefix + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, target, in)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return r, nil
}

// call sends a request and returns the bytes of the response. The transport asks for
// compressed responses, and decompresses them.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body any) ([]byte, error) {
	b, _, err := c.callTagged(ctx, method, path, query, body, "")
	return b, err
}

// errUnchanged is the answer to a request with the current tag.
var errUnchanged = errors.New("unchanged")

// callTagged is call for a resource that the client has with a tag, if that is not
// empty. It returns the tag of the response, too.
func (c *Client) callTagged(ctx context.Context, method, path string, query url.Values, body any,
	tag string,
) (b []byte, newTag string, err error) {
	r, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return nil, "", err
	}
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, "", fmt.Errorf("request to %s: %w", c.base, unwrapURL(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified && tag != "" {
		return nil, tag, errUnchanged
	}
	if resp.StatusCode >= 300 {
		return nil, "", fmt.Errorf("%s %s: %w", method, path, readProblem(resp))
	}
	b, err = io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return nil, "", fmt.Errorf("%s %s: read response: %w", method, path, err)
	}
	if len(b) > maxResponse {
		return nil, "", fmt.Errorf("%s %s: response of more than %d bytes", method, path, maxResponse)
	}
	return b, resp.Header.Get("ETag"), nil
}

// unwrapURL removes the method and URL from errors of net/http.
func unwrapURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// readProblem decodes an error response, which may come from a proxy.
func readProblem(resp *http.Response) *Problem {
	p := &Problem{}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // a truncated body is still useful
	if json.Unmarshal(b, p) != nil || p.Detail == "" {
		p.Title = http.StatusText(resp.StatusCode)
	}
	p.Status = resp.StatusCode
	return p
}

// callJSON sends a request and decodes the JSON response.
func callJSON[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any) (v T, err error) {
	b, err := c.call(ctx, method, path, query, body)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("%s %s: read response: %w", method, path, err)
	}
	return v, nil
}
