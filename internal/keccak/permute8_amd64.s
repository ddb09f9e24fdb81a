// Keccak-f[1600] on eight states at once.
//
// The state is 25 words of 64 bits, A[x,y] at index x+5y; word w of state s lies at byte
// 64*w+8*s, so that one 512-bit register holds one word of all eight states. The whole state
// stays in registers: 25 for it and 7 for the working values.
//
// A round is theta, rho, pi, chi, iota (FIPS 202, section 3.2). Pi moves no data: chi of row Y
// is computed in place in the five registers whose words pi moves there, and the next round
// names the registers in their new places. That is what the argument lists below are: the
// register of A[0,0], A[1,0], ... A[4,4]. If R[x,y] is the register of one round, the next
// has R'[y, 2x+3y] = R[x,y], indices modulo 5; after 24 rounds every word is home again.

//go:build amd64 && !purego

#include "textflag.h"

DATA roundConstants<>+0(SB)/8, $0x0000000000000001
DATA roundConstants<>+8(SB)/8, $0x0000000000008082
DATA roundConstants<>+16(SB)/8, $0x800000000000808a
DATA roundConstants<>+24(SB)/8, $0x8000000080008000
DATA roundConstants<>+32(SB)/8, $0x000000000000808b
DATA roundConstants<>+40(SB)/8, $0x0000000080000001
DATA roundConstants<>+48(SB)/8, $0x8000000080008081
DATA roundConstants<>+56(SB)/8, $0x8000000000008009
DATA roundConstants<>+64(SB)/8, $0x000000000000008a
DATA roundConstants<>+72(SB)/8, $0x0000000000000088
DATA roundConstants<>+80(SB)/8, $0x0000000080008009
DATA roundConstants<>+88(SB)/8, $0x000000008000000a
DATA roundConstants<>+96(SB)/8, $0x000000008000808b
DATA roundConstants<>+104(SB)/8, $0x800000000000008b
DATA roundConstants<>+112(SB)/8, $0x8000000000008089
DATA roundConstants<>+120(SB)/8, $0x8000000000008003
DATA roundConstants<>+128(SB)/8, $0x8000000000008002
DATA roundConstants<>+136(SB)/8, $0x8000000000000080
DATA roundConstants<>+144(SB)/8, $0x000000000000800a
DATA roundConstants<>+152(SB)/8, $0x800000008000000a
DATA roundConstants<>+160(SB)/8, $0x8000000080008081
DATA roundConstants<>+168(SB)/8, $0x8000000000008080
DATA roundConstants<>+176(SB)/8, $0x0000000080000001
DATA roundConstants<>+184(SB)/8, $0x8000000080008008
GLOBL roundConstants<>(SB), RODATA|NOPTR, $192

// XOR3 sets d to d ^ b ^ c.
#define XOR3(c, b, d) VPTERNLOGQ $0x96, c, b, d

// CHI sets a to a ^ (^b & c).
#define CHI(c, b, a) VPTERNLOGQ $0xd2, c, b, a

// COLUMN sets c to the parity of a column.
#define COLUMN(c, a0, a1, a2, a3, a4) \
	VMOVDQA64 a0, c;  \
	XOR3(a1, a2, c); \
	XOR3(a3, a4, c)

// ROW does the last part of theta, rho and chi for the five words that pi moves into one row:
// ai is xored with di and rotated left by ri. Z28 and Z29 are scratch.
#define ROW(a0, d0, r0, a1, d1, r1, a2, d2, r2, a3, d3, r3, a4, d4, r4) \
	VPXORQ d0, a0, a0;  \
	VPXORQ d1, a1, a1;  \
	VPXORQ d2, a2, a2;  \
	VPXORQ d3, a3, a3;  \
	VPXORQ d4, a4, a4;  \
	VPROLQ r0, a0, a0;  \
	VPROLQ r1, a1, a1;  \
	VPROLQ r2, a2, a2;  \
	VPROLQ r3, a3, a3;  \
	VPROLQ r4, a4, a4;  \
	VMOVDQA64 a0, Z28;  \
	VMOVDQA64 a1, Z29;  \
	CHI(a2, a1, a0);    \
	CHI(a3, a2, a1);    \
	CHI(a4, a3, a2);    \
	CHI(Z28, a4, a3);   \
	CHI(Z29, Z28, a4)

// ROUND is one round; axy is the register of A[x,y] and rc the offset of the round constant.
// Column parities go to Z25 to Z29, the theta effects of the columns 0 to 4 to
// Z30, Z31, Z26, Z27, Z25.
#define ROUND(rc, a00, a10, a20, a30, a40, a01, a11, a21, a31, a41, a02, a12, a22, a32, a42, a03, a13, a23, a33, a43, a04, a14, a24, a34, a44) \
	COLUMN(Z25, a00, a01, a02, a03, a04); \
	COLUMN(Z26, a10, a11, a12, a13, a14); \
	COLUMN(Z27, a20, a21, a22, a23, a24); \
	COLUMN(Z28, a30, a31, a32, a33, a34); \
	COLUMN(Z29, a40, a41, a42, a43, a44); \
	VPROLQ $1, Z26, Z30;      \
	VPROLQ $1, Z27, Z31;      \
	VPXORQ Z29, Z30, Z30;     \
	VPXORQ Z25, Z31, Z31;     \
	VPROLQ $1, Z25, Z25;      \
	VPXORQ Z28, Z25, Z25;     \
	VPROLQ $1, Z28, Z28;      \
	VPXORQ Z28, Z26, Z26;     \
	VPROLQ $1, Z29, Z29;      \
	VPXORQ Z29, Z27, Z27;     \
	ROW(a00, Z30, $0, a11, Z31, $44, a22, Z26, $43, a33, Z27, $21, a44, Z25, $14); \
	VPXORQ.BCST roundConstants<>+rc(SB), a00, a00; \
	ROW(a30, Z27, $28, a41, Z25, $20, a02, Z30, $3, a13, Z31, $45, a24, Z26, $61); \
	ROW(a10, Z31, $1, a21, Z26, $6, a32, Z27, $25, a43, Z25, $8, a04, Z30, $18); \
	ROW(a40, Z25, $27, a01, Z30, $36, a12, Z31, $10, a23, Z26, $15, a34, Z27, $56); \
	ROW(a20, Z26, $62, a31, Z27, $55, a42, Z25, $39, a03, Z30, $41, a14, Z31, $2)

// func permute8(state *[200]uint64)
TEXT ·permute8(SB), NOSPLIT, $0-8
	MOVQ state+0(FP), DI
	VMOVDQU64 0(DI), Z0
	VMOVDQU64 64(DI), Z1
	VMOVDQU64 128(DI), Z2
	VMOVDQU64 192(DI), Z3
	VMOVDQU64 256(DI), Z4
	VMOVDQU64 320(DI), Z5
	VMOVDQU64 384(DI), Z6
	VMOVDQU64 448(DI), Z7
	VMOVDQU64 512(DI), Z8
	VMOVDQU64 576(DI), Z9
	VMOVDQU64 640(DI), Z10
	VMOVDQU64 704(DI), Z11
	VMOVDQU64 768(DI), Z12
	VMOVDQU64 832(DI), Z13
	VMOVDQU64 896(DI), Z14
	VMOVDQU64 960(DI), Z15
	VMOVDQU64 1024(DI), Z16
	VMOVDQU64 1088(DI), Z17
	VMOVDQU64 1152(DI), Z18
	VMOVDQU64 1216(DI), Z19
	VMOVDQU64 1280(DI), Z20
	VMOVDQU64 1344(DI), Z21
	VMOVDQU64 1408(DI), Z22
	VMOVDQU64 1472(DI), Z23
	VMOVDQU64 1536(DI), Z24

	ROUND(0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24)
	ROUND(8, Z0, Z6, Z12, Z18, Z24, Z3, Z9, Z10, Z16, Z22, Z1, Z7, Z13, Z19, Z20, Z4, Z5, Z11, Z17, Z23, Z2, Z8, Z14, Z15, Z21)
	ROUND(16, Z0, Z9, Z13, Z17, Z21, Z18, Z22, Z1, Z5, Z14, Z6, Z10, Z19, Z23, Z2, Z24, Z3, Z7, Z11, Z15, Z12, Z16, Z20, Z4, Z8)
	ROUND(24, Z0, Z22, Z19, Z11, Z8, Z17, Z14, Z6, Z3, Z20, Z9, Z1, Z23, Z15, Z12, Z21, Z18, Z10, Z7, Z4, Z13, Z5, Z2, Z24, Z16)
	ROUND(32, Z0, Z14, Z23, Z7, Z16, Z11, Z20, Z9, Z18, Z2, Z22, Z6, Z15, Z4, Z13, Z8, Z17, Z1, Z10, Z24, Z19, Z3, Z12, Z21, Z5)
	ROUND(40, Z0, Z20, Z15, Z10, Z5, Z7, Z2, Z22, Z17, Z12, Z14, Z9, Z4, Z24, Z19, Z16, Z11, Z6, Z1, Z21, Z23, Z18, Z13, Z8, Z3)
	ROUND(48, Z0, Z2, Z4, Z1, Z3, Z10, Z12, Z14, Z11, Z13, Z20, Z22, Z24, Z21, Z23, Z5, Z7, Z9, Z6, Z8, Z15, Z17, Z19, Z16, Z18)
	ROUND(56, Z0, Z12, Z24, Z6, Z18, Z1, Z13, Z20, Z7, Z19, Z2, Z14, Z21, Z8, Z15, Z3, Z10, Z22, Z9, Z16, Z4, Z11, Z23, Z5, Z17)
	ROUND(64, Z0, Z13, Z21, Z9, Z17, Z6, Z19, Z2, Z10, Z23, Z12, Z20, Z8, Z16, Z4, Z18, Z1, Z14, Z22, Z5, Z24, Z7, Z15, Z3, Z11)
	ROUND(72, Z0, Z19, Z8, Z22, Z11, Z9, Z23, Z12, Z1, Z15, Z13, Z2, Z16, Z5, Z24, Z17, Z6, Z20, Z14, Z3, Z21, Z10, Z4, Z18, Z7)
	ROUND(80, Z0, Z23, Z16, Z14, Z7, Z22, Z15, Z13, Z6, Z4, Z19, Z12, Z5, Z3, Z21, Z11, Z9, Z2, Z20, Z18, Z8, Z1, Z24, Z17, Z10)
	ROUND(88, Z0, Z15, Z5, Z20, Z10, Z14, Z4, Z19, Z9, Z24, Z23, Z13, Z3, Z18, Z8, Z7, Z22, Z12, Z2, Z17, Z16, Z6, Z21, Z11, Z1)
	ROUND(96, Z0, Z4, Z3, Z2, Z1, Z20, Z24, Z23, Z22, Z21, Z15, Z19, Z18, Z17, Z16, Z10, Z14, Z13, Z12, Z11, Z5, Z9, Z8, Z7, Z6)
	ROUND(104, Z0, Z24, Z18, Z12, Z6, Z2, Z21, Z15, Z14, Z8, Z4, Z23, Z17, Z11, Z5, Z1, Z20, Z19, Z13, Z7, Z3, Z22, Z16, Z10, Z9)
	ROUND(112, Z0, Z21, Z17, Z13, Z9, Z12, Z8, Z4, Z20, Z16, Z24, Z15, Z11, Z7, Z3, Z6, Z2, Z23, Z19, Z10, Z18, Z14, Z5, Z1, Z22)
	ROUND(120, Z0, Z8, Z11, Z19, Z22, Z13, Z16, Z24, Z2, Z5, Z21, Z4, Z7, Z10, Z18, Z9, Z12, Z15, Z23, Z1, Z17, Z20, Z3, Z6, Z14)
	ROUND(128, Z0, Z16, Z7, Z23, Z14, Z19, Z5, Z21, Z12, Z3, Z8, Z24, Z10, Z1, Z17, Z22, Z13, Z4, Z15, Z6, Z11, Z2, Z18, Z9, Z20)
	ROUND(136, Z0, Z5, Z10, Z15, Z20, Z23, Z3, Z8, Z13, Z18, Z16, Z21, Z1, Z6, Z11, Z14, Z19, Z24, Z4, Z9, Z7, Z12, Z17, Z22, Z2)
	ROUND(144, Z0, Z3, Z1, Z4, Z2, Z15, Z18, Z16, Z19, Z17, Z5, Z8, Z6, Z9, Z7, Z20, Z23, Z21, Z24, Z22, Z10, Z13, Z11, Z14, Z12)
	ROUND(152, Z0, Z18, Z6, Z24, Z12, Z4, Z17, Z5, Z23, Z11, Z3, Z16, Z9, Z22, Z10, Z2, Z15, Z8, Z21, Z14, Z1, Z19, Z7, Z20, Z13)
	ROUND(160, Z0, Z17, Z9, Z21, Z13, Z24, Z11, Z3, Z15, Z7, Z18, Z5, Z22, Z14, Z1, Z12, Z4, Z16, Z8, Z20, Z6, Z23, Z10, Z2, Z19)
	ROUND(168, Z0, Z11, Z22, Z8, Z19, Z21, Z7, Z18, Z4, Z10, Z17, Z3, Z14, Z20, Z6, Z13, Z24, Z5, Z16, Z2, Z9, Z15, Z1, Z12, Z23)
	ROUND(176, Z0, Z7, Z14, Z16, Z23, Z8, Z10, Z17, Z24, Z1, Z11, Z18, Z20, Z2, Z9, Z19, Z21, Z3, Z5, Z12, Z22, Z4, Z6, Z13, Z15)
	ROUND(184, Z0, Z10, Z20, Z5, Z15, Z16, Z1, Z11, Z21, Z6, Z7, Z17, Z2, Z12, Z22, Z23, Z8, Z18, Z3, Z13, Z14, Z24, Z9, Z19, Z4)

	VMOVDQU64 Z0, 0(DI)
	VMOVDQU64 Z1, 64(DI)
	VMOVDQU64 Z2, 128(DI)
	VMOVDQU64 Z3, 192(DI)
	VMOVDQU64 Z4, 256(DI)
	VMOVDQU64 Z5, 320(DI)
	VMOVDQU64 Z6, 384(DI)
	VMOVDQU64 Z7, 448(DI)
	VMOVDQU64 Z8, 512(DI)
	VMOVDQU64 Z9, 576(DI)
	VMOVDQU64 Z10, 640(DI)
	VMOVDQU64 Z11, 704(DI)
	VMOVDQU64 Z12, 768(DI)
	VMOVDQU64 Z13, 832(DI)
	VMOVDQU64 Z14, 896(DI)
	VMOVDQU64 Z15, 960(DI)
	VMOVDQU64 Z16, 1024(DI)
	VMOVDQU64 Z17, 1088(DI)
	VMOVDQU64 Z18, 1152(DI)
	VMOVDQU64 Z19, 1216(DI)
	VMOVDQU64 Z20, 1280(DI)
	VMOVDQU64 Z21, 1344(DI)
	VMOVDQU64 Z22, 1408(DI)
	VMOVDQU64 Z23, 1472(DI)
	VMOVDQU64 Z24, 1536(DI)
	VZEROUPPER
	RET
