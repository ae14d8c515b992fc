// Package client is the Go client of Weft's HTTP API. It uses the types and errors
// of control/api: errors.Is(err, api.ErrNotFound) works across the network. For users: docs/api.md.
package client
