//go:build !unix

package regular

const nonblocking = 0
