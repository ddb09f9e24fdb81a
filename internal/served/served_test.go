package served

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// role is the variable that makes this test's program behave like a node.
const role = "LEANI_SERVED_TEST"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		goleak.VerifyTestMain(m)
		return
	case "mute":
		hang()
	case "deaf":
		signal.Notify(make(chan os.Signal, 1), os.Interrupt) // nobody takes it
		listen()
		hang()
	case "dies":
		fmt.Fprintln(os.Stderr, `{"msg":"the port is taken"}`)
		os.Exit(3)
	case "dies later":
		listen()
		os.Exit(3)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	listen()
	<-interrupted
	if os.Getenv(role) == "ends badly" {
		os.Exit(4)
	}
	os.Exit(0)
}

// hang waits for what never comes.
func hang() { _, _ = os.Stdin.Read(make([]byte, 1)) }

func listen() {
	fmt.Fprintln(os.Stderr, "no JSON")
	for _, url := range []string{"http://a", "ws://b", "http://more", "ws://more"} {
		fmt.Fprintf(os.Stderr, "{\"msg\":\"listening\",\"url\":%q}\n", url)
	}
}

func command(t *testing.T, as string) *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), role+"="+as)
	if _, err := cmd.StdinPipe(); err != nil { // on which nothing comes
		t.Fatal(err)
	}
	return cmd
}

// patience bounds waits for what is sure to come.
const patience = time.Minute

// A node is found where it says it listens, and ends when it is told to.
func TestProcess(t *testing.T) {
	p, err := Start(command(t, "serves"), patience)
	if err != nil {
		t.Fatal(err)
	}
	if p.HTTP != "http://a" || p.WebSocket != "ws://b" || !strings.Contains(p.Log(), "no JSON\n") || p.PID() == os.Getpid() {
		t.Errorf("got %s, %s, %d\n%s", p.HTTP, p.WebSocket, p.PID(), p.Log())
	}
	if err := p.Stop(patience); err != nil {
		t.Error(err)
	}
	<-p.Exited
}

// What goes wrong is told, and no process stays.
func TestFailures(t *testing.T) {
	if _, err := Start(exec.Command("/nonexistent"), patience); err == nil {
		t.Error("a program that is not there was started")
	}
	if _, err := Start(command(t, "dies"), patience); err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "port is taken") {
		t.Errorf("got %v", err)
	}
	if _, err := Start(command(t, "mute"), 0); err == nil || !strings.Contains(err.Error(), "does not listen") {
		t.Errorf("got %v", err)
	}
	for as, want := range map[string]string{"ends badly": "exit status 4", "deaf": "does not end", "dies later": "by itself: exit status 3"} {
		p, err := Start(command(t, as), patience)
		if err != nil {
			t.Fatal(err)
		}
		wait := patience
		switch as {
		case "deaf":
			wait = 0
		case "dies later":
			<-p.Exited
		}
		if err := p.Stop(wait); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", as, err)
		}
	}
}
