package dta

import (
	"bytes"
	"crypto/aes"
	"crypto/subtle"
	"testing"
)

// TestCMAC has the examples of RFC 4493, section 4.
func TestCMAC(t *testing.T) {
	key := [16]byte(fromHex("2b7e151628aed2a6abf7158809cf4f3c"))
	message := fromHex("6bc1bee22e409f96e93d7e117393172a" + "ae2d8a571e03ac9c9eb76fac45af8e51" +
		"30c81c46a35ce411e5fbc1191a0a52ef" + "f69f2445df4f9b17ad2b417be66c3710")
	c := newCMAC(key)
	for _, tt := range []struct {
		length int
		want   string
	}{
		{0, "bb1d6929e95937287fa37d129b756746"},
		{16, "070a16b46b4d4144f79bdd9dd04a287c"},
		{40, "dfa66747de9ae63030ca32611497c827"},
		{64, "51f0bebf7e3b9d92fc49741779363cfe"},
	} {
		if got := c.sum(message[:tt.length]); !bytes.Equal(got, fromHex(tt.want)) {
			t.Errorf("MAC of %d bytes = %x; want %s", tt.length, got, tt.want)
		}
	}
}

// TestCMACOfAnyLength compares with the definition, one block after the other.
func TestCMACOfAnyLength(t *testing.T) {
	key := [16]byte(fromHex("2b7e151628aed2a6abf7158809cf4f3c"))
	c := newCMAC(key)
	message := make([]byte, 3*len(c.out)+1)
	for i := range message {
		message[i] = byte(i * 7)
	}
	for n := range len(message) + 1 {
		if got, want := c.sum(message[:n]), slowCMAC(key, message[:n]); !bytes.Equal(got, want) {
			t.Fatalf("MAC of %d bytes = %x; want %x", n, got, want)
		}
	}
}

func slowCMAC(key [16]byte, message []byte) []byte {
	block, _ := aes.NewCipher(key[:])
	k := make([]byte, 16)
	block.Encrypt(k, k)
	shift := func() { // the whole number one bit to the left
		top := k[0] >> 7
		for i := range k {
			k[i] <<= 1
			if i+1 < len(k) {
				k[i] |= k[i+1] >> 7
			}
		}
		if top == 1 {
			k[15] ^= 0x87
		}
	}
	shift()
	padded := bytes.Clone(message)
	if len(padded) == 0 || len(padded)%16 != 0 {
		shift()
		padded = append(padded, 0x80)
		for len(padded)%16 != 0 {
			padded = append(padded, 0)
		}
	}
	x := make([]byte, 16)
	for i := 0; i < len(padded); i += 16 {
		subtle.XORBytes(x, x, padded[i:i+16])
		if i+16 == len(padded) {
			subtle.XORBytes(x, x, k)
		}
		block.Encrypt(x, x)
	}
	return x
}
