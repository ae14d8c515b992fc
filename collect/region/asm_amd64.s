//go:build !purego && !race

#include "textflag.h"

// Go's assembler has no name for PREFETCHW, so it is spelled in bytes.

// func Prefetch(words []uint64, at []uint64)
TEXT ·Prefetch(SB), NOSPLIT, $0-48
	MOVQ words_base+0(FP), DI
	MOVQ at_base+24(FP), SI
	MOVQ at_len+32(FP), CX
	LEAQ (SI)(CX*8), CX
	JMP  test

next:
	MOVQ (SI), AX
	BYTE $0x0f; BYTE $0x0d; BYTE $0x0c; BYTE $0xc7 // PREFETCHW (DI)(AX*8)
	ADDQ $8, SI

test:
	CMPQ SI, CX
	JNE  next
	RET

// func StoreLine(to *[8]uint64, b *[64]byte, next *uint64)
TEXT ·StoreLine(SB), NOSPLIT, $0-24
	MOVQ   to+0(FP), DI
	MOVQ   b+8(FP), SI
	MOVQ   next+16(FP), AX
	BYTE   $0x0f; BYTE $0x0d; BYTE $0x08 // PREFETCHW (AX)
	MOVUPS (SI), X0
	MOVUPS 16(SI), X1
	MOVUPS 32(SI), X2
	MOVUPS 48(SI), X3
	MOVUPS X0, (DI)
	MOVUPS X1, 16(DI)
	MOVUPS X2, 32(DI)
	MOVUPS X3, 48(DI)
	RET
