// Package chainfixture loads blocks of real and conformance chains from the shared data for
// tests, as raw material together with what go-ethereum answers about them.
//
// It decodes with go-ethereum, not with the packages under test. Tests that need a fixture are
// skipped where the shared data is absent. Only tests import this package.
package chainfixture
