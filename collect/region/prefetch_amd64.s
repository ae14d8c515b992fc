//go:build !purego

#include "textflag.h"

// func Prefetch(words []uint64, at []uint64)
//
// Go's assembler has no name for PREFETCHW. Its bytes are those of
// PREFETCHW (DI)(AX*8).
TEXT ·Prefetch(SB), NOSPLIT, $0-48
	MOVQ words_base+0(FP), DI
	MOVQ at_base+24(FP), SI
	MOVQ at_len+32(FP), CX
	LEAQ (SI)(CX*8), CX
	JMP  test
next:
	MOVQ (SI), AX
	BYTE $0x0f; BYTE $0x0d; BYTE $0x0c; BYTE $0xc7
	ADDQ $8, SI
test:
	CMPQ SI, CX
	JNE  next
	RET
