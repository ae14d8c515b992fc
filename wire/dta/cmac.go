package dta

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
)

// cmac is AES-CMAC with a key of 128 bits (RFC 4493), which routers use in TCP-AO
// (RFC 5926). Go has it only inside crypto/internal. Every server of the last
// fifteen years has instructions for AES; many have none for SHA-256, and there
// HMAC of a full datagram takes longer than writing its reports into memory.
type cmac struct {
	chain   chain
	subkeys [2][aes.BlockSize]byte // for a last block that is whole, and that is padded
	last    [aes.BlockSize]byte
	out     [16 * aes.BlockSize]byte // ciphertext, of which only the last block counts
}

// chain is the block mode of cipher.NewCBCEncrypter.
type chain interface {
	cipher.BlockMode
	SetIV(iv []byte)
}

var zeroIV [aes.BlockSize]byte

func newCMAC(key [16]byte) *cmac {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // 16 is a legal length
	}
	c := &cmac{chain: cipher.NewCBCEncrypter(block, zeroIV[:]).(chain)}
	var zero [aes.BlockSize]byte
	block.Encrypt(zero[:], zero[:])
	c.subkeys[0] = double(zero)
	c.subkeys[1] = double(c.subkeys[0])
	return c
}

// double multiplies by x in GF(2^128).
func double(b [aes.BlockSize]byte) (d [aes.BlockSize]byte) {
	carry := b[0] >> 7
	for i := range len(b) - 1 {
		d[i] = b[i]<<1 | b[i+1]>>7
	}
	d[len(d)-1] = b[len(b)-1]<<1 ^ carry*0x87
	return d
}

// sum returns the MAC of a message, valid until the next call.
func (c *cmac) sum(message []byte) []byte {
	whole := max(len(message)-1, 0) / aes.BlockSize * aes.BlockSize
	c.chain.SetIV(zeroIV[:])
	for done := 0; done < whole; {
		n := min(whole-done, len(c.out))
		c.chain.CryptBlocks(c.out[:n], message[done:done+n])
		done += n
	}
	clear(c.last[:])
	subkey := &c.subkeys[0]
	if n := copy(c.last[:], message[whole:]); n < aes.BlockSize {
		c.last[n] = 0x80
		subkey = &c.subkeys[1]
	}
	subtle.XORBytes(c.last[:], c.last[:], subkey[:])
	c.chain.CryptBlocks(c.out[:aes.BlockSize], c.last[:])
	return c.out[:aes.BlockSize]
}
