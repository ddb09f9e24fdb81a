//go:build amd64 && !purego

package keccak

import (
	"unsafe"

	"github.com/cloudflare/circl/simd/keccakf1600"
	"golang.org/x/sys/cpu"
)

// permute8 applies Keccak-f[1600] to eight interleaved states: word w of state s is at
// state[8*w+s]. It needs AVX-512F. Speed, not correctness, depends on the alignment.
//
//go:noescape
func permute8(state *[stateWords * 8]uint64)

func has8() bool { return cpu.X86.HasAVX512F }

func has4() bool { return keccakf1600.IsEnabledX4() }

// states holds the interleaved states of a wide kernel. They live behind pointers because
// their place in memory must be aligned and must not change.
type states struct {
	four  *keccakf1600.StateX4
	eight *[stateWords * 8]uint64
}

// prepare returns the width of the kernel and the words that permute works on.
func (s *states) prepare(k kernel) (width int, words []uint64) {
	if k == kernelWide4 {
		if s.four == nil {
			s.four = new(keccakf1600.StateX4)
		}
		return 4, s.four.Initialize(false)
	}
	if s.eight == nil {
		const alignment = 64 // bytes of a 512-bit register and of a cache line
		slack := make([]uint64, stateWords*8+alignment/8-1)
		skip := -uintptr(unsafe.Pointer(&slack[0])) % alignment / 8
		s.eight = (*[stateWords * 8]uint64)(slack[skip:])
	}
	return 8, s.eight[:]
}

func (s *states) permute(k kernel) {
	if k == kernelWide4 {
		s.four.Permute()
	} else {
		permute8(s.eight)
	}
}
