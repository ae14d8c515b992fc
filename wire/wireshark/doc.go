// Package wireshark holds a dissector for Weft's own headers, weft.lua, and
// the test that every packet Weft sends is read by tshark as it was meant.
package wireshark

import _ "embed"

// Dissector is the text of weft.lua, for commands that hand it to users.
//
//go:embed weft.lua
var Dissector string
