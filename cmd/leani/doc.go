// Command leani runs and looks after a node: it writes and checks settings, fills the store
// from history sources, serves queries, and inspects what is stored.
//
// This package is assembly and nothing else. main.go hands the arguments to run, command.go
// builds the tree of commands, and each command has a file of its own. What commands do to a
// data directory goes through the interface in node.go, so that tests can run every command
// without a store and the packages below know nothing of flags, files of settings, signals or
// exit codes.
//
// Invariants: only this package reads flags and the environment; nothing is opened before
// the settings are valid; results go to standard output, everything else to standard error;
// a runtime failure is one line that starts with "error: ".
package main
