// Package api is Weft's HTTP interface: what people and programs see of the
// fabric and may ask of the controller, as JSON with an OpenAPI 3.1 document at
// /openapi.json, and as server-sent events. It holds no telemetry of its own:
// live state comes from the controller and history from a store, through the
// interfaces in backend.go. Every answer is bounded, whatever is asked.
//
// The page it serves is console's, given as files. For users: docs/api.md.
package api
