// Package announced gives decoders input whose sizes lie, and measures what they allocate for it. It is for tests.
//
// A decoder that checks sizes before it allocates takes memory in proportion to its input, whatever the input
// announces.
package announced
