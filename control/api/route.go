package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weft-telemetry/weft/store"
)

// Prefix is the path prefix of all API routes.
const Prefix = "/api/v1"

type reply[T any] struct{ Body T }

// operation describes a route. Errors are problem details, declared once as the
// default response.
func (s *Server) operation(method, path, id, tag, summary string) huma.Operation {
	return huma.Operation{
		Method: method, Path: Prefix + path, OperationID: id, Tags: []string{tag}, Summary: summary,
		MaxBodyBytes: s.cfg.MaxBody, BodyReadTimeout: s.cfg.ReadTimeout, Security: security,
	}
}

func get[I, T any](s *Server, path, id, tag, summary string, f func(context.Context, *I) (T, error)) {
	register(s, s.operation(http.MethodGet, path, id, tag, summary), f)
}

func put[I, T any](s *Server, path, id, tag, summary string, f func(context.Context, *I) (T, error)) {
	register(s, s.operation(http.MethodPut, path, id, tag, summary), f)
}

func post[I, T any](s *Server, path, id, tag, summary string, f func(context.Context, *I) (T, error)) {
	op := s.operation(http.MethodPost, path, id, tag, summary)
	op.DefaultStatus = http.StatusCreated
	register(s, op, f)
}

func del[I any](s *Server, path, id, tag, summary string, f func(context.Context, *I) error) {
	op := s.operation(http.MethodDelete, path, id, tag, summary)
	op.DefaultStatus = http.StatusNoContent
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*struct{}, error) {
		return nil, s.problem(op.OperationID, f(ctx, in))
	})
}

// register adds a route with a JSON response.
func register[I, T any](s *Server, op huma.Operation, f func(context.Context, *I) (T, error)) {
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*reply[T], error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, s.problem(op.OperationID, err)
		}
		fillLists(reflect.ValueOf(&out).Elem())
		return &reply[T]{out}, nil
	})
}

// rawReply is a response that may be something else than JSON.
type rawReply struct {
	typ, name string
	data      []byte
	tag       string                // ETag; empty: none
	unchanged bool                  // the client has what the tag is of
	encode    func(zip bool) []byte // returns data from a cache, or compressed
}

// jsonReply is a response with the value of a pointer.
func jsonReply(v any) rawReply { return rawReply{typ: "application/json", data: encodeJSON(v)} }

// registerRaw adds a route whose response is bytes; op declares their media types.
func registerRaw[I any](s *Server, op huma.Operation, f func(context.Context, *I) (rawReply, error)) {
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, s.problem(op.OperationID, err)
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			if out.tag != "" {
				c.SetHeader("ETag", out.tag)
			}
			if out.unchanged {
				c.SetStatus(http.StatusNotModified)
				return
			}
			if out.encode != nil {
				zip := acceptsGzip(c.Header("Accept-Encoding"))
				if out.data = out.encode(zip); zip {
					c.SetHeader("Content-Encoding", "gzip")
				}
			}
			c.SetHeader("Content-Type", out.typ)
			if out.name != "" {
				c.SetHeader("Content-Disposition", `attachment; filename="`+out.name+`"`)
			}
			c.SetStatus(http.StatusOK)
			_, _ = c.BodyWriter().Write(out.data) // the client has disconnected
		}}, nil
	})
}

// encodeJSON encodes the value of a pointer as responses are encoded.
func encodeJSON(v any) []byte {
	fillLists(reflect.ValueOf(v))
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("api: %T cannot be encoded: %v", v, err)) // all types are ours
	}
	return b.Bytes()
}

// jsonResponse declares the response of a raw route.
func jsonResponse[T any](s *Server) map[string]*huma.Response {
	return map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		"application/json": {Schema: schemaOf[T](s)},
	}}}
}

// taggedResponse declares the response of a raw route with an ETag.
func taggedResponse[T any](s *Server) map[string]*huma.Response {
	r := jsonResponse[T](s)
	tag := map[string]*huma.Param{"ETag": {
		Description: "For If-None-Match", Schema: &huma.Schema{Type: huma.TypeString},
	}}
	r["200"].Headers = tag
	r["304"] = &huma.Response{Description: "The client has the current one", Headers: tag}
	r["default"] = &huma.Response{Description: "Error", Content: map[string]*huma.MediaType{
		"application/problem+json": {Schema: schemaOf[huma.ErrorModel](s)},
	}}
	return r
}

func schemaOf[T any](s *Server) *huma.Schema {
	return s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}

// errForbidden is for callers without permission.
var errForbidden = errors.New("forbidden")

// problem converts an error to problem details. Errors that no backend has marked
// for clients are logged and not sent: they may contain internal paths and
// addresses.
func (s *Server) problem(op string, err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []struct {
		err    error
		status int
	}{
		{ErrNotFound, http.StatusNotFound},
		{ErrInvalid, http.StatusUnprocessableEntity},
		{store.ErrQuery, http.StatusUnprocessableEntity},
		{ErrConflict, http.StatusConflict},
		{ErrBusy, http.StatusTooManyRequests},
		{ErrUnsupported, http.StatusNotImplemented},
		{errForbidden, http.StatusForbidden},
	} {
		if errors.Is(err, known.err) {
			return huma.NewError(known.status, strings.TrimSuffix(err.Error(), ": "+ErrInvalid.Error()))
		}
	}
	if errors.Is(err, store.ErrBusy) {
		s.metrics.refused.WithLabelValues("store").Inc()
		return huma.ErrorWithHeaders(huma.NewError(http.StatusServiceUnavailable,
			"too many concurrent store queries; retry later or with a shorter range"),
			http.Header{"Retry-After": {"1"}})
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return huma.NewError(http.StatusServiceUnavailable, "the query timed out; use a shorter range or a smaller limit")
	}
	s.log.Error("request failed", "operation", op, "err", err)
	return huma.NewError(http.StatusInternalServerError, "internal error; see the controller's log")
}

// fillLists replaces nil slices by empty ones, so that lists are never null in
// JSON. It modifies the value, so the caller must own it. It does not descend into
// lists of flat structs, so a shared State is only read.
func fillLists(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fillLists(v.Elem())
		}
	case reflect.Struct:
		if v.Type().PkgPath() != reflect.TypeFor[Server]().PkgPath() {
			return // time.Time and the like
		}
		for i := range v.NumField() {
			fillLists(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // bytes are a string in JSON
		}
		if v.IsNil() {
			if v.CanSet() {
				v.Set(reflect.MakeSlice(v.Type(), 0, 0))
			}
			return
		}
		if hasLists(v.Type().Elem()) {
			for i := range v.Len() {
				fillLists(v.Index(i))
			}
		}
	}
}

// hasLists reports whether a type contains lists that fillLists must visit.
func hasLists(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice:
		return t.Elem().Kind() != reflect.Uint8
	case reflect.Pointer:
		return hasLists(t.Elem())
	case reflect.Struct:
		if t.PkgPath() != reflect.TypeFor[Server]().PkgPath() {
			return false
		}
		for i := range t.NumField() {
			if hasLists(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
