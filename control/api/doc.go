// Package api is Weft's HTTP API: JSON with an OpenAPI 3.1 document at
// /openapi.json, server-sent events, and Prometheus metrics. It stores no
// telemetry: live state comes from the controller and history from a store,
// through the interfaces in backend.go. Every response is bounded, whatever the
// request.
//
// It also serves the files of the web console. For users: docs/api.md.
package api
