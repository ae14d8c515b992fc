package postcard

// code is g of the paper: it spreads a value over 32 bits, without loss. A
// table of b bits keeps the low b.
func code(v uint32) uint32 {
	v ^= v >> 16
	v *= codeA
	v ^= v >> 15
	v *= codeB
	return v ^ v>>16
}

// value is the value whose code is c.
func value(c uint32) uint32 {
	c ^= c >> 16
	c *= undoB
	c ^= c>>15 ^ c>>30
	c *= undoA
	return c ^ c>>16
}

// Odd multipliers that spread well (Ettinger's search for 32-bit mixers), and
// their inverses modulo 2^32.
const (
	codeA = 0x21f0aaad
	codeB = 0x735a2d97
	undoA = 0x333c4925
	undoB = 0x97132227
)
