package keccak

// kernel names a way to hash a queue.
type kernel uint8

const (
	kernelUnset  kernel = iota
	kernelSingle        // one message after the other
	kernelWide4         // four states in AVX2 registers
	kernelWide8         // eight states in AVX-512 registers
)

// kernels are the ways that this machine supports, the best one last.
func kernels() []kernel {
	list := []kernel{kernelSingle}
	if has4() {
		list = append(list, kernelWide4)
	}
	if has8() {
		list = append(list, kernelWide8)
	}
	return list
}

func bestKernel() kernel {
	switch {
	case has8():
		return kernelWide8
	case has4():
		return kernelWide4
	}
	return kernelSingle
}
