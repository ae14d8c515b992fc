package postcard

// encodeValue is g of the paper: it spreads a value over 32 bits, without loss. A
// table of b bits keeps the low b.
func encodeValue(v uint32) uint32 {
	v *= codeMix
	return v ^ v>>16
}

// decodeValue is the value whose code is c.
func decodeValue(c uint32) uint32 { return (c ^ c>>16) * codeUndo }

const (
	codeMix  = 0x9e3779b1 // a prime near 2^32 divided by the golden ratio
	codeUndo = 0xe8b2f51  // its inverse modulo 2^32
)

// blankCode is code(Blank).
const blankCode = 0x61c8e787
