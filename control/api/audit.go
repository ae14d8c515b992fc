package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// auditRecord is one line of the audit log: a request of a known caller that may
// have changed something.
type auditRecord struct {
	Time      time.Time       `json:"time"`
	Who       string          `json:"who"` // "operator", "tenant NAME"
	Remote    string          `json:"remote"`
	Method    string          `json:"method"`
	Path      string          `json:"path"`
	Query     string          `json:"query,omitempty"`
	Body      json.RawMessage `json:"body,omitempty"` // absent if it is too long or no JSON
	BodyBytes int64           `json:"body_bytes"`     // that were read
	Status    int             `json:"status"`
}

const (
	maxAuditText = 1024 // bytes of a path or query
	maxAuditBody = 4096
	auditKeep    = 3 // rotated files: .1 is the newest
)

// auditLog appends records to a file, one JSON object per line. A failure to write
// is logged and counted, and the request is answered all the same.
type auditLog struct {
	path    string
	maxSize model.Bytes
	log     *slog.Logger
	failed  func() // counts a record that was not written
	quiet   logLimit

	mu   sync.Mutex
	file *os.File // nil: not open
	size int64
	err  error // of the last record
}

// open opens the file, if it is not open.
func (a *auditLog) open() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.openLocked()
}

func (a *auditLog) openLocked() error {
	if a.file != nil {
		return nil
	}
	f, err := os.OpenFile(a.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", a.path)
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = f.Chmod(0o600) // made by another program
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	a.file, a.size = f, info.Size()
	return nil
}

// add writes a record.
func (a *auditLog) add(r *auditRecord) {
	line, err := json.Marshal(r)
	if err == nil {
		err = a.write(append(line, '\n'))
	}
	a.mu.Lock()
	a.err = err
	a.mu.Unlock()
	if err == nil {
		return
	}
	a.failed()
	if skipped, ok := a.quiet.allow(time.Now()); ok {
		a.log.Error("audit record not written; check the disk and the file's permissions", "file", a.path, "err", err,
			"who", r.Who, "method", r.Method, "path", r.Path, "status", r.Status, "more_since_last_line", skipped)
	}
}

func (a *auditLog) write(line []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.openLocked(); err != nil {
		return err
	}
	if a.size > 0 && a.size+int64(len(line)) > int64(a.maxSize) {
		if err := a.rotate(); err != nil {
			return err
		}
	}
	n, err := a.file.Write(line)
	if err != nil {
		if n > 0 { // no half line before the next record
			err = errors.Join(err, a.file.Truncate(a.size))
		}
		return err
	}
	a.size += int64(n)
	return nil
}

// rotate renames the file to .1, .1 to .2 and so on, and begins a new one.
func (a *auditLog) rotate() error {
	if err := a.closeLocked(); err != nil {
		return err
	}
	for i := auditKeep; i > 0; i-- {
		from := a.path
		if i > 1 {
			from = fmt.Sprintf("%s.%d", a.path, i-1)
		}
		if err := os.Rename(from, fmt.Sprintf("%s.%d", a.path, i)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return a.openLocked()
}

// close writes the file to the disk.
func (a *auditLog) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closeLocked()
}

func (a *auditLog) closeLocked() error {
	if a.file == nil {
		return nil
	}
	err := errors.Join(a.file.Sync(), a.file.Close())
	a.file = nil
	return err
}

// lastError returns why the last record was not written, or nil.
func (a *auditLog) lastError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// audited reports whether a request is one for the audit log. Requests without a
// valid token are not: they change nothing, and anyone could fill the log.
func audited(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// startAudit keeps the beginning of the request's body, and returns the function
// that writes the record when the request has been answered.
func (s *Server) startAudit(r *http.Request, who *caller) (finish func(status int)) {
	body := &auditBody{ReadCloser: r.Body}
	r.Body = body
	rec := &auditRecord{
		Time: time.Now().UTC(), Who: who.name(), Remote: r.RemoteAddr, Method: r.Method,
		Path: truncate(r.URL.Path, maxAuditText), Query: redactQuery(r),
	}
	return func(status int) {
		if who.tenant != nil && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
			return // refused for its rate, or a tenant could push the operator's records out
		}
		if who.tenant != nil && status >= http.StatusBadRequest && !who.refusedWrites.allow(time.Now()) {
			return // so it could with requests that are wrong
		}
		rec.Status, rec.BodyBytes = status, body.n
		if body.n <= maxAuditBody {
			rec.Body = redactBody(body.start)
		}
		s.audit.add(rec)
	}
}

// auditBody keeps the first bytes that are read through it.
type auditBody struct {
	io.ReadCloser
	start []byte
	n     int64
}

func (b *auditBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.start = append(b.start, p[:min(n, maxAuditBody-len(b.start))]...)
	b.n += int64(n)
	return n, err
}

func truncate(text string, n int) string {
	if len(text) > n {
		return strings.ToValidUTF8(text[:n], "") + "…"
	}
	return text
}

const redacted = "[redacted]"

// isSecret reports whether a field may hold a secret by its name. No request of
// the API has one; clients may send what they like.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"token", "secret", "password", "authorization", "private"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

func redactQuery(r *http.Request) string {
	q := r.URL.Query()
	for name := range q {
		if isSecret(name) {
			q[name] = []string{redacted}
		}
	}
	return truncate(q.Encode(), maxAuditText)
}

// redactBody returns JSON without secrets, or nil for anything that is not JSON.
func redactBody(b []byte) json.RawMessage {
	var v any
	if json.Unmarshal(b, &v) != nil {
		return nil
	}
	redactValue(v)
	out, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return out
}

func redactValue(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if isSecret(name) {
				v[name] = redacted
			} else {
				redactValue(value)
			}
		}
	case []any:
		for _, value := range v {
			redactValue(value)
		}
	}
}
