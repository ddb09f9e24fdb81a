package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"leani": main})
}

// TestScripts runs the dialogues of testdata/script against the real command in processes of
// its own. Each names the requirements it proves.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		// Some scripts look for an exact code; testscript itself only knows success and failure.
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"code": exitCode},
	})
}
