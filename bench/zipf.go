package bench

import "math"

// zipf draws ranks from 0 with probability proportional to (shift+rank)^-exponent, in constant time
// by the alias method (A. J. Walker 1977; the tables as by M. D. Vose 1991). It is immutable.
type zipf struct {
	keep  []uint32 // the rank stays when 32 random bits are below it
	alias []uint32
}

func newZipf(n int, exponent, shift float64) *zipf {
	weights := make([]float64, n)
	sum := 0.0
	for i := range weights {
		weights[i] = math.Pow(shift+float64(i), -exponent)
		sum += weights[i]
	}
	z := &zipf{keep: make([]uint32, n), alias: make([]uint32, n)}
	var small, large []int
	for i := range weights {
		weights[i] *= float64(n) / sum
		if weights[i] < 1 {
			small = append(small, i)
		} else {
			large = append(large, i)
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		z.keep[s], z.alias[s] = uint32(weights[s]*math.MaxUint32), uint32(l)
		if weights[l] -= 1 - weights[s]; weights[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range append(small, large...) { // what is left has weight 1 but for rounding
		z.keep[i], z.alias[i] = math.MaxUint32, uint32(i)
	}
	return z
}

// draw turns 64 random bits into a rank.
func (z *zipf) draw(bits uint64) uint32 {
	i := uint32(bits >> 32 * uint64(len(z.keep)) >> 32)
	if uint32(bits) < z.keep[i] {
		return i
	}
	return z.alias[i]
}
