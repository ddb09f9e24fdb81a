package main

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// longTests turns on the tests that take minutes: `make e2e`.
var longTests = flag.Bool("e2e.long", false, "run the long end-to-end tests")

// TestMain makes the test binary serve as the leani command, too: tests find it in their path.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"leani": measuredMain})
}

// measuredMain is main, and leaves the peak of the process's memory in a file if a test asks for it.
func measuredMain() {
	code := run(os.Args, os.Stdin, os.Stdout, os.Stderr)
	if path := os.Getenv(peakFileVariable); path != "" {
		if err := writePeak(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = exitFailure
		}
	}
	os.Exit(code)
}

// TestScripts runs the dialogues of testdata/script against the real command in processes of
// its own. Each names the requirements it proves.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("ERA", bundledFiles(t))
			env.Values[serversKey{}] = map[string]*server{}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// Some scripts look for an exact code; testscript itself only knows success and failure.
			"code":   exitCode,
			"serve":  serveCommand,
			"stop":   stopCommand,
			"ask":    askCommand,
			"damage": damageCommand,
		},
	})
}
