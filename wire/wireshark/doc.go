// Package wireshark holds a Wireshark dissector for Weft's protocols, weft.lua.
// Its test checks that tshark dissects every packet that Weft sends correctly.
package wireshark

import _ "embed"

// Dissector is the text of weft.lua, for commands that print it.
//
//go:embed weft.lua
var Dissector string
