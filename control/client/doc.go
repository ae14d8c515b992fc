// Package client asks a Weft controller over HTTP. Its types are those of
// control/api, and so are its errors: errors.Is(err, api.ErrNotFound) works
// across the network. For users: docs/api.md.
package client
